import type { LiveFrame } from './live-frame.ts';
import type { LiveMetrics } from './live.metrics.ts';
import { LOSSY_BYTES, SLOW_BYTES, type Subscriber } from './subscriber.ts';
import { wantsValues, type ValueCatchUp } from './value-catch-up.ts';

/**
 * Writes frames to the live subscribers of a stream. The frames of one iteration of the event loop are joined once for all
 * subscribers of a group, and are one write for each.
 */
export class FanOut {
  readonly #metrics: LiveMetrics;
  readonly #values: ValueCatchUp;
  readonly #onWritten: (flags: number) => void;
  readonly #groups = new Map<unknown, Set<Subscriber>>();
  #due: LiveFrame[] = [];
  #size = 0;

  /** @param onWritten called with all flags of the events that were written to all live subscribers */
  constructor(metrics: LiveMetrics, values: ValueCatchUp, onWritten: (flags: number) => void) {
    this.#metrics = metrics;
    this.#values = values;
    this.#onWritten = onWritten;
  }

  get size(): number {
    return this.#size;
  }

  all(): readonly Subscriber[] {
    return [...this.#groups.values()].flatMap((group) => [...group]);
  }

  /** The caller must flush before: due frames are not for the new subscriber. */
  add(subscriber: Subscriber): void {
    const group = this.#groups.get(subscriber.group);
    if (group === undefined) this.#groups.set(subscriber.group, new Set([subscriber]));
    else group.add(subscriber);
    this.#size += 1;
  }

  remove(subscriber: Subscriber): void {
    const group = this.#groups.get(subscriber.group);
    if (group?.delete(subscriber) !== true) return;
    this.#size -= 1;
    if (group.size === 0) this.#groups.delete(subscriber.group);
  }

  push(frame: LiveFrame): void {
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

  #writeTo(group: Set<Subscriber>, frames: readonly LiveFrame[], events: readonly LiveFrame[]): void {
    const [first] = group;
    if (first === undefined) return;
    const all = first.encode(frames);
    const hasValues = events.length < frames.length && wantsValues(first.include);
    const durable = hasValues ? first.encode(events) : all;
    for (const subscriber of group) {
      const { unsentBytes } = subscriber;
      if (unsentBytes <= LOSSY_BYTES) subscriber.allowanceBytes = 0;
      if (unsentBytes > SLOW_BYTES + subscriber.allowanceBytes) {
        subscriber.onSlow((events[0]?.sequence ?? 1) - 1);
        continue;
      }
      const leaveOut = hasValues && (subscriber.lacksValues || unsentBytes > LOSSY_BYTES);
      const bytes = leaveOut ? durable : all;
      if (bytes !== null) subscriber.write(bytes);
      if (leaveOut && !subscriber.lacksValues) this.#values.requestAfterDraining(subscriber);
    }
  }
}
