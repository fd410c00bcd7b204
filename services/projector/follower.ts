import type { FeedItem, SharedFeedItem, StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { LogWitness } from '#libs/platform/readmodel/index.ts';
import type { Attempts } from './attempts.ts';
import type { Bookmark } from './bookmarks.ts';
import type { EventApplier } from './event-applier.ts';
import type { ProgressReport } from './progress.ts';
import type { Trail } from './trail.ts';

export interface FollowerParts {
  readonly applier: EventApplier;
  readonly attempts: Attempts;
  readonly progress: ProgressReport;
  readonly trail?: Trail | undefined;
  readonly witness: LogWitness;
  /** The end of what is followed was reached, and that is saved. */
  readonly onLive: () => void;
  /** The read models, or what is noted of them, are no longer those that were begun with: all is to begin again. */
  readonly onStale: () => void;
}

/** What is followed, from its beginning until all begins again. */
export interface Followed {
  readonly items: AsyncIterable<FeedItem | SharedFeedItem>;
  readonly bookmark: Bookmark;
  /** Events to skip, because the read models of their category hold them already. */
  readonly isAhead?: ((event: StoredEvent) => boolean) | undefined;
  /** Called at the end of what there was, and again where the feed says so again. */
  readonly onCaughtUp?: () => Promise<void>;
}

/** Saving after each item would cost a round trip; the checkpoint is only a hint where to start. */
const SAVE_EVERY_MS = 200;
const CHECK_EVERY_MS = 1_000;

/** Items of a feed -> read models, and a bookmark of how far they have come. */
export class Follower {
  readonly #parts: FollowerParts;
  #savedMs = 0;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /**
   * Until `signal` aborts, an event cannot be applied, the read models are others, or the feed can give no more.
   *
   * @returns why it can give no more; null otherwise
   */
  async follow({ items, bookmark, isAhead, onCaughtUp }: Followed, signal: AbortSignal): Promise<string | null> {
    const { attempts } = this.#parts;
    const watch = setInterval(() => void this.#check(bookmark, signal), CHECK_EVERY_MS);
    try {
      for await (const item of items) {
        if (item.kind === 'lost') return item.reason;
        const isTaken = await attempts.untilDone(signal, () => this.#take(item, { bookmark, isAhead }, signal));
        if (isTaken !== true) return null;
        if (item.kind === 'caught-up' && onCaughtUp !== undefined) await attempts.untilDone(signal, onCaughtUp);
      }
      return null;
    } finally {
      clearInterval(watch);
    }
  }

  /** @returns false if the read models, or what is noted of them, are no longer those that were begun with */
  async #take(
    item: Exclude<FeedItem | SharedFeedItem, { kind: 'lost' }>,
    { bookmark, isAhead }: Pick<Followed, 'bookmark' | 'isAhead'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { applier, progress, witness, onLive } = this.#parts;
    switch (item.kind) {
      case 'events':
        await applier.apply(item.events, isAhead);
        witness.note(item.events);
        return this.#save(bookmark, false, signal);
      case 'checkpoint':
        progress.reached(item.position);
        return this.#save(bookmark, false, signal);
      case 'assigned':
        // What was known before is compared with what is saved for the last time.
        if (!(await this.#save(bookmark, true, signal))) return false;
        bookmark.begin(item.marks);
        return true;
      case 'reached':
        bookmark.note(item.marks);
        return this.#save(bookmark, false, signal);
      case 'caught-up':
        if (!(await this.#save(bookmark, true, signal))) return false;
        if (signal.aborted) return true;
        onLive();
        progress.report({ phase: 'live' });
        return true;
    }
  }

  async #save(bookmark: Bookmark, atOnce: boolean, signal: AbortSignal, complete = atOnce): Promise<boolean> {
    // Redis came back meanwhile, perhaps without some of what was applied: a checkpoint of ours would skip that.
    if (signal.aborted) return true;
    if (!atOnce && Date.now() - this.#savedMs < SAVE_EVERY_MS) return true;
    const saved = await bookmark.save(complete);
    if (saved) await this.#parts.witness.save();
    this.#savedMs = Date.now();
    const { phase, position } = this.#parts.progress.now;
    if (phase === 'live' && position !== null) this.#parts.trail?.note(position);
    return saved;
  }

  /** Emptied read models are noticed even while no event comes in. */
  async #check(bookmark: Bookmark, signal: AbortSignal): Promise<void> {
    try {
      const isCurrent = await bookmark.isCurrent();
      if (signal.aborted) return;
      if (!isCurrent) this.#parts.onStale();
      // What was applied since the last save is saved now, so that a restart does not repeat it.
      else if (Date.now() - this.#savedMs >= CHECK_EVERY_MS) await this.#save(bookmark, true, signal, false);
    } catch {
      // Redis is away: the loop itself waits for it, and is restarted when the connection is back.
    }
  }
}
