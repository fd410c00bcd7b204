import { joinedFor } from './channel-frame.ts';
import type { ChannelFrame, FrameForm } from './channel-frame.ts';
import { LOSSY_BYTES, SLOW_BYTES } from './channel-listener.ts';
import type { ChannelListener } from './channel-listener.ts';
import { CLOSE } from './protocol.ts';
import type { RealtimeMetrics } from './realtime.metrics.ts';
import { wantsValues } from './value-catch-up.ts';

/** Listeners that are written the very same bytes. */
interface Group {
  readonly form: FrameForm;
  readonly include: number;
  readonly listeners: Set<ChannelListener>;
}

export interface FanOutEvents {
  /** The listener reads too slowly for what is not an event: it was left out. */
  onSlowForValues(listener: ChannelListener): void;
  /** The channel's last event was written to these. */
  onArchived(listeners: readonly ChannelListener[]): void;
  onAccessChange(): void;
}

/**
 * Writes frames to all live listeners of a channel: what is due in one turn of the event loop is joined, once
 * for all who asked for the same, and is one write for each.
 */
export class FanOut {
  readonly #metrics: RealtimeMetrics;
  readonly #events: FanOutEvents;
  readonly #groups = new Map<string, Group>();
  #due: ChannelFrame[] = [];
  #size = 0;

  constructor(metrics: RealtimeMetrics, events: FanOutEvents) {
    this.#metrics = metrics;
    this.#events = events;
  }

  /** Live listeners. */
  get size(): number {
    return this.#size;
  }

  /** The caller has flushed: nothing that is due is for the new one. */
  add(listener: ChannelListener): void {
    const { form, include } = listener;
    const name = `${form} ${include}`;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { form, include, listeners: new Set() };
      this.#groups.set(name, group);
    }
    group.listeners.add(listener);
    this.#size += 1;
  }

  remove(listener: ChannelListener): void {
    const name = `${listener.form} ${listener.include}`;
    const group = this.#groups.get(name);
    if (group?.listeners.delete(listener) !== true) return;
    this.#size -= 1;
    if (group.listeners.size === 0) this.#groups.delete(name);
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
    if (events.length > 0) this.#metrics.sent(events.length * this.#size);
    for (const group of this.#groups.values()) this.#writeTo(group, frames, events);
    if (events.some((frame) => frame.archives)) this.#events.onArchived(this.all());
    else if (events.some((frame) => frame.changesAccess)) this.#events.onAccessChange();
  }

  /** Those for whom more than so many bytes wait. */
  withUnsent(bytes: number): readonly ChannelListener[] {
    return this.all().filter(({ unsent }) => unsent > bytes);
  }

  #writeTo(
    { form, include, listeners }: Group,
    frames: readonly ChannelFrame[],
    events: readonly ChannelFrame[],
  ): void {
    const all = joinedFor(frames, form, include);
    const hasValues = events.length < frames.length && wantsValues(include);
    const durable = hasValues ? joinedFor(events, form, include) : all;
    for (const listener of listeners) {
      const { unsent } = listener;
      if (unsent <= LOSSY_BYTES) listener.allowance = 0;
      if (unsent > SLOW_BYTES + listener.allowance) {
        listener.close(CLOSE.slow, 'Too slow: connect again and resume');
        continue;
      }
      const leaveOut = hasValues && (listener.lacksValues || unsent > LOSSY_BYTES);
      const bytes = leaveOut ? durable : all;
      if (bytes !== null) listener.write(bytes);
      if (leaveOut && !listener.lacksValues) this.#events.onSlowForValues(listener);
    }
  }

  all(): readonly ChannelListener[] {
    return [...this.#groups.values()].flatMap(({ listeners }) => [...listeners]);
  }
}
