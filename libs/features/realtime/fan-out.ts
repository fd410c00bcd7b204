import { joinedFor, type ChannelFrame, type FrameFormat } from './channel-frame.ts';
import { CLOSE } from './protocol.ts';
import type { RealtimeMetrics } from './realtime.metrics.ts';
import { LOSSY_BYTES, SLOW_BYTES, type Subscriber } from './subscriber.ts';
import { wantsValues, type ValueCatchUp } from './value-catch-up.ts';

/** Subscribers that receive the same bytes. */
interface Group {
  readonly format: FrameFormat;
  readonly include: number;
  readonly subscribers: Set<Subscriber>;
}

/**
 * Writes frames to the live subscribers of a channel. The frames of one turn of the event loop are joined once for all
 * subscribers that include the same, and are one write for each.
 */
export class FanOut {
  readonly #metrics: RealtimeMetrics;
  readonly #values: ValueCatchUp;
  readonly #onWritten: (flags: number) => void;
  readonly #groups = new Map<string, Group>();
  #due: ChannelFrame[] = [];
  #size = 0;

  /** @param onWritten called with all flags of the events that were written to all live subscribers */
  constructor(metrics: RealtimeMetrics, values: ValueCatchUp, onWritten: (flags: number) => void) {
    this.#metrics = metrics;
    this.#values = values;
    this.#onWritten = onWritten;
  }

  get size(): number {
    return this.#size;
  }

  all(): readonly Subscriber[] {
    return [...this.#groups.values()].flatMap(({ subscribers }) => [...subscribers]);
  }

  /** The caller must flush before: due frames are not for the new subscriber. */
  add(subscriber: Subscriber): void {
    const { format, include } = subscriber;
    const name = `${format} ${include}`;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { format, include, subscribers: new Set() };
      this.#groups.set(name, group);
    }
    group.subscribers.add(subscriber);
    this.#size += 1;
  }

  remove(subscriber: Subscriber): void {
    const name = `${subscriber.format} ${subscriber.include}`;
    const group = this.#groups.get(name);
    if (group?.subscribers.delete(subscriber) !== true) return;
    this.#size -= 1;
    if (group.subscribers.size === 0) this.#groups.delete(name);
  }

  push(frame: ChannelFrame): void {
    if (this.#size === 0) return;
    this.#due.push(frame);
    if (this.#due.length === 1) setImmediate(() => this.flush());
  }

  flush(): void {
    const frames = this.#due;
    if (frames.length === 0) return;
    this.#due = [];
    const events = frames.filter(({ sequence }) => sequence !== null);
    if (events.length > 0) this.#metrics.sent.add({}, events.length * this.#size);
    for (const group of this.#groups.values()) this.#writeTo(group, frames, events);
    this.#onWritten(events.reduce((all, { flags }) => all | flags, 0));
  }

  #writeTo(
    { format, include, subscribers }: Group,
    frames: readonly ChannelFrame[],
    events: readonly ChannelFrame[],
  ): void {
    const all = joinedFor(frames, format, include);
    const hasValues = events.length < frames.length && wantsValues(include);
    const durable = hasValues ? joinedFor(events, format, include) : all;
    for (const subscriber of subscribers) {
      const { unsentBytes } = subscriber;
      if (unsentBytes <= LOSSY_BYTES) subscriber.allowanceBytes = 0;
      if (unsentBytes > SLOW_BYTES + subscriber.allowanceBytes) {
        subscriber.close(CLOSE.slow, 'Too slow: connect again and resume');
        continue;
      }
      const leaveOut = hasValues && (subscriber.lacksValues || unsentBytes > LOSSY_BYTES);
      const bytes = leaveOut ? durable : all;
      if (bytes !== null) subscriber.write(bytes);
      if (leaveOut && !subscriber.lacksValues) this.#values.requestAfterDraining(subscriber);
    }
  }
}
