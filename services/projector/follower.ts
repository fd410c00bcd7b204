import { CorruptEventError, Fault } from '#libs/kernel/faults.ts';
import type { FeedItem, StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { ApplyMoment, LogWitness, Projector } from '#libs/platform/readmodel/index.ts';
import type { CheckpointWriter } from './checkpoint-writers.ts';
import type { ProgressReport } from './progress.ts';
import type { RecentCheckpoints } from './recent-checkpoints.ts';

interface FollowerParts {
  readonly projector: Projector;
  readonly progress: ProgressReport;
  readonly recent: RecentCheckpoints | undefined;
  readonly witness: LogWitness;
  /** The end of the feed was reached, and that is saved. */
  readonly onLive: () => void;
  /** The builds or the saved checkpoints have changed: begin again. */
  readonly onStale: () => void;
}

/** A subscription, from a start until the projector begins again. */
export interface Followed {
  readonly items: AsyncIterable<FeedItem>;
  readonly checkpoints: CheckpointWriter;
  /** Selects events to skip, because the read models of their category hold them already. */
  readonly isAhead?: (event: StoredEvent) => boolean;
  /** Called at each `caught-up` of the feed. */
  readonly onCaughtUp?: () => Promise<void>;
}

/** Saving after each item would cost a round trip; the checkpoint is only a hint where to start. */
const SAVE_EVERY_MS = 200;
const CHECK_EVERY_MS = 1_000;
/** Attempts at an event whose error no store has caused: a bug in a projection persists. */
const MAX_ATTEMPTS = 3;

/** Applies the items of a feed to the read models, and saves how far they have come. */
export class Follower {
  readonly #parts: FollowerParts;
  #savedMs = 0;
  /** After the checkpoints were read that are followed now. */
  #since: ApplyMoment | undefined;
  /** The event that failed last, though the stores answered. */
  #failing: { readonly name: string; readonly attempts: number } | null = null;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /**
   * Runs until `signal` aborts, an event cannot be applied, the builds have changed, or the feed is lost.
   *
   * @returns why the feed is lost; null otherwise
   */
  async follow(followed: Followed, signal: AbortSignal): Promise<string | null> {
    const { progress, projector } = this.#parts;
    this.#since = projector.now();
    const watch = setInterval(() => void this.#check(followed.checkpoints, signal), CHECK_EVERY_MS);
    try {
      for await (const item of followed.items) {
        if (item.kind === 'lost') return item.reason;
        const isTaken = await progress.untilDone(signal, () => this.#take(item, followed, signal));
        if (isTaken !== true) return null;
        if (item.kind === 'caught-up' && followed.onCaughtUp) await progress.untilDone(signal, followed.onCaughtUp);
      }
      return null;
    } finally {
      clearInterval(watch);
    }
  }

  /** @returns false if the builds or the saved checkpoints are no longer those of the start */
  async #take(
    item: Exclude<FeedItem, { kind: 'lost' }>,
    { checkpoints, isAhead }: Followed,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { progress, onLive } = this.#parts;
    switch (item.kind) {
      case 'events':
        await this.#apply(item.events, isAhead);
        break;
      case 'checkpoint':
        progress.report({ position: item.position });
        break;
      case 'reached':
        checkpoints.note?.(item.checkpoints);
        break;
      case 'assigned':
        // Compares the former checkpoints with the saved ones for the last time.
        if (!(await this.#save(checkpoints, false, signal))) return false;
        checkpoints.begin?.(item.checkpoints);
        this.#since = this.#parts.projector.now();
        return true;
      case 'caught-up':
        if (!(await this.#save(checkpoints, true, signal))) return false;
        if (signal.aborted) return true;
        onLive();
        progress.report({ phase: 'live' });
        return true;
    }
    return Date.now() - this.#savedMs < SAVE_EVERY_MS || this.#save(checkpoints, false, signal);
  }

  async #save(checkpoints: CheckpointWriter, complete: boolean, signal: AbortSignal): Promise<boolean> {
    // Redis may have come back without some of the applied events, which a checkpoint would then skip.
    if (signal.aborted) return true;
    const saved = await checkpoints.save(complete);
    if (saved) await this.#parts.witness.save();
    this.#savedMs = Date.now();
    const { phase, position } = this.#parts.progress.now;
    if (phase === 'live' && position !== null) this.#parts.recent?.note(position);
    return saved;
  }

  /** Notices deleted read models even while there are no events, and saves the latest progress. */
  async #check(checkpoints: CheckpointWriter, signal: AbortSignal): Promise<void> {
    try {
      const saved = await this.#save(checkpoints, false, signal);
      if (!saved && !signal.aborted) this.#parts.onStale();
    } catch {
      // Redis is unavailable: the loop retries, and is restarted when the connection is back.
    }
  }

  /**
   * The events before one that cannot be applied are applied, so that the loop halts at exactly that event.
   *
   * @throws CorruptEventError at an event that can never be applied; anything else may pass
   */
  async #apply(events: readonly StoredEvent[], isAhead: Followed['isAhead']): Promise<void> {
    try {
      await this.#applyBatch(events, isAhead);
      this.#failing = null;
    } catch (error) {
      if (isOfStore(error)) throw error;
      for (const event of events) await this.#applyAlone(event, isAhead);
    }
  }

  /** @throws CorruptEventError also where the projection has failed at this very event often enough */
  async #applyAlone(event: StoredEvent, isAhead: Followed['isAhead']): Promise<void> {
    try {
      await this.#applyBatch([event], isAhead);
    } catch (error) {
      if (isOfStore(error) || error instanceof CorruptEventError) throw error;
      const name = `${event.type} ${event.stream}@${event.revision}`;
      const attempts = this.#failing?.name === name ? this.#failing.attempts + 1 : 1;
      this.#failing = { name, attempts };
      if (attempts < MAX_ATTEMPTS) throw error;
      throw new CorruptEventError(`${name} cannot be applied: ${String(error)}`, { cause: error });
    }
  }

  async #applyBatch(events: readonly StoredEvent[], isAhead: Followed['isAhead']): Promise<void> {
    const { projector, progress, witness } = this.#parts;
    const { phase, source, eventsSeen } = progress.now;
    const wanted = isAhead === undefined ? events : events.filter((event) => !isAhead(event));
    await projector.applyStored(wanted, { repairLists: phase === 'catching-up', since: this.#since });
    witness.note(wanted);
    const position = events.at(-1)?.position ?? null;
    // The position of a partition is known from its checkpoints only.
    const hasPosition = source === 'log' && position !== null;
    progress.report({ eventsSeen: eventsSeen + events.length, ...(hasPosition && { position }) });
  }
}

/** Operators may repair at any time what Redis rejects a command for, such as a key of another type. */
function isOfStore(error: unknown): boolean {
  return error instanceof Fault || (error instanceof Error && error.name === 'ReplyError');
}
