import type { FeedItem, StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { LogWitness } from '#libs/platform/readmodel/index.ts';
import type { CheckpointWriter } from './checkpoint-writers.ts';
import type { EventApplier } from './event-applier.ts';
import type { ProgressReport } from './progress.ts';
import type { RecentCheckpoints } from './recent-checkpoints.ts';

export interface FollowerParts {
  readonly applier: EventApplier;
  readonly progress: ProgressReport;
  readonly recent?: RecentCheckpoints | undefined;
  readonly witness: LogWitness;
  /** The end of the source was reached, and that is saved. */
  readonly onLive: () => void;
  /** The builds or the saved checkpoints are no longer those of the start: begin again. */
  readonly onStale: () => void;
}

/** A source of events, from a start until the projector begins again. */
export interface Followed {
  readonly items: AsyncIterable<FeedItem>;
  readonly checkpoints: CheckpointWriter;
  /** Events to skip, because the read models of their category hold them already. */
  readonly isAhead?: ((event: StoredEvent) => boolean) | undefined;
  /** Called at each `caught-up` of the feed. */
  readonly onCaughtUp?: () => Promise<void>;
}

/** Saving after each item would cost a round trip; the checkpoint is only a hint where to start. */
const SAVE_EVERY_MS = 200;
const CHECK_EVERY_MS = 1_000;

/** Applies the items of a feed to the read models, and saves how far they have come. */
export class Follower {
  readonly #parts: FollowerParts;
  #savedMs = 0;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /**
   * Runs until `signal` aborts, an event cannot be applied, the builds have changed, or the feed is lost.
   *
   * @returns why the feed is lost; null otherwise
   */
  async follow({ items, checkpoints, isAhead, onCaughtUp }: Followed, signal: AbortSignal): Promise<string | null> {
    const { progress } = this.#parts;
    const watch = setInterval(() => void this.#check(checkpoints, signal), CHECK_EVERY_MS);
    try {
      for await (const item of items) {
        if (item.kind === 'lost') return item.reason;
        const isTaken = await progress.untilDone(signal, () => this.#take(item, { checkpoints, isAhead }, signal));
        if (isTaken !== true) return null;
        if (item.kind === 'caught-up' && onCaughtUp !== undefined) await progress.untilDone(signal, onCaughtUp);
      }
      return null;
    } finally {
      clearInterval(watch);
    }
  }

  /** @returns false if the builds or the saved checkpoints are no longer those of the start */
  async #take(
    item: Exclude<FeedItem, { kind: 'lost' }>,
    { checkpoints, isAhead }: Pick<Followed, 'checkpoints' | 'isAhead'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { applier, progress, witness, onLive } = this.#parts;
    switch (item.kind) {
      case 'events':
        await applier.apply(item.events, isAhead);
        witness.note(item.events);
        return this.#save(checkpoints, false, signal);
      case 'checkpoint':
        progress.reached(item.position);
        return this.#save(checkpoints, false, signal);
      case 'assigned':
        // Compares the former checkpoints with the saved ones for the last time.
        if (!(await this.#save(checkpoints, true, signal))) return false;
        checkpoints.begin(item.checkpoints);
        return true;
      case 'reached':
        checkpoints.note(item.checkpoints);
        return this.#save(checkpoints, false, signal);
      case 'caught-up':
        if (!(await this.#save(checkpoints, true, signal))) return false;
        if (signal.aborted) return true;
        onLive();
        progress.report({ phase: 'live' });
        return true;
    }
  }

  async #save(
    checkpoints: CheckpointWriter,
    atOnce: boolean,
    signal: AbortSignal,
    complete = atOnce,
  ): Promise<boolean> {
    // Redis may have come back without some of the applied events, which a checkpoint would then skip.
    if (signal.aborted) return true;
    if (!atOnce && Date.now() - this.#savedMs < SAVE_EVERY_MS) return true;
    const saved = await checkpoints.save(complete);
    if (saved) await this.#parts.witness.save();
    this.#savedMs = Date.now();
    const { phase, position } = this.#parts.progress.now;
    if (phase === 'live' && position !== null) this.#parts.recent?.note(position);
    return saved;
  }

  /** Notices deleted read models even while there are no events. */
  async #check(checkpoints: CheckpointWriter, signal: AbortSignal): Promise<void> {
    try {
      const isCurrent = await checkpoints.isCurrent();
      if (signal.aborted) return;
      if (!isCurrent) this.#parts.onStale();
      // Saves the latest progress, so that a restart does not repeat it.
      else if (Date.now() - this.#savedMs >= CHECK_EVERY_MS) await this.#save(checkpoints, true, signal, false);
    } catch {
      // Redis is unavailable: the loop retries, and is restarted when the connection is back.
    }
  }
}
