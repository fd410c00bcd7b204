import { FRAME_FLAG } from '#libs/platform/live/index.ts';

import { ChannelFrame, joinedFor } from './channel-frame.ts';
import { LOSSY_BYTES } from './channel-listener.ts';
import type { ChannelListener } from './channel-listener.ts';
import type { LiveValue } from './realtime.ports.ts';

interface Round {
  readonly listeners: ReadonlySet<ChannelListener>;
  /** What came live since the values were asked for: some of it they know already, some not yet. */
  since: ChannelFrame[];
}

export interface ValueCatchUpParts {
  current(): Promise<readonly LiveValue[]>;
  /** The channel's, to see whether there were events meanwhile. */
  head(): number;
  onFailure(error: unknown): void;
}

/** A channel in which there is always an event meanwhile must not keep everybody waiting. */
const MOST_READS = 5;

/**
 * Brings listeners what is not in the log, as it is now: those who come late, and those for whom some of it was
 * left out. One question to the store serves all who wait for the answer.
 *
 * Guarantees: after the current values comes every newer one, in order; some may come that they hold already
 * (a delta that does not fit is not applied, and an older number is out of date).
 */
export class ValueCatchUp {
  readonly #parts: ValueCatchUpParts;
  #waiting = new Set<ChannelListener>();
  #round: Round | null = null;

  constructor(parts: ValueCatchUpParts) {
    this.#parts = parts;
  }

  /** Until it has got them, the listener is written no values: see `lacksValues`. */
  request(listener: ChannelListener): void {
    if (!wantsValues(listener.include)) return;
    listener.lacksValues = true;
    this.#waiting.add(listener);
    if (this.#round === null) void this.#run();
  }

  /** Told of all that comes live and is not an event. */
  observe(frame: ChannelFrame): void {
    this.#round?.since.push(frame);
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const round: Round = { listeners: this.#waiting, since: [] };
      this.#waiting = new Set();
      this.#round = round;
      try {
        const current = await this.#read(round);
        for (const listener of round.listeners) this.#write(listener, [...current, ...round.since]);
      } catch (error) {
        // Asked again by who sweeps: they still lack them.
        this.#parts.onFailure(error);
      }
      this.#round = null;
    }
  }

  /** What an event has ended must not come behind it: values of before an event that was told meanwhile are thrown away. */
  async #read(round: Round): Promise<ChannelFrame[]> {
    const { current, head } = this.#parts;
    for (let reads = 1; ; reads++) {
      const before = head();
      round.since = [];
      const values = await current();
      if (head() !== before && reads < MOST_READS) continue;
      return values.map(({ flags, json }) => new ChannelFrame(null, flags, json));
    }
  }

  #write(listener: ChannelListener, frames: readonly ChannelFrame[]): void {
    if (!listener.isOpen) return;
    if (listener.unsent > LOSSY_BYTES) return this.afterDraining(listener);
    const bytes = joinedFor(frames, listener.form, listener.include);
    if (bytes !== null) listener.write(bytes);
    listener.allowance = bytes?.length ?? 0;
    listener.lacksValues = false;
  }

  /** For a listener that reads too slowly to be sent them now. */
  afterDraining(listener: ChannelListener): void {
    listener.lacksValues = true;
    void listener.drained().then(() => listener.isOpen && this.request(listener));
  }
}

export function wantsValues(include: number): boolean {
  return (include & (FRAME_FLAG.incomplete | FRAME_FLAG.ephemeral)) !== 0;
}
