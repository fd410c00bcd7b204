import type { GlobalPosition } from '#libs/kernel/event.ts';
import { CorruptEventError, Fault } from '#libs/kernel/faults.ts';
import type {
  EventFeed,
  FeedItem,
  SharedFeed,
  SharedFeedItem,
  ShareEnd,
  StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { comparePositions } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type {
  ProjectionShares,
  ProjectionStart,
  ProjectionState,
  Projector,
  SavedShares,
} from '#libs/platform/readmodel/index.ts';
import { LogBookmark, SharesBookmark } from './bookmarks.ts';
import type { Bookmark, HeldShare } from './bookmarks.ts';
import type { Trail } from './trail.ts';

/** How far the read models have come. */
export interface ProjectionProgress {
  /** `halted`: an event was found that cannot be applied; nothing behind it is, until Parley is mended. */
  readonly phase: 'catching-up' | 'live' | 'halted';
  /** Where shares are followed, that of all projectors together. */
  readonly position: GlobalPosition | null;
  /** What is followed: the log itself; or these shares of it, the others being left to other projectors. */
  readonly source: 'log' | readonly HeldShare[];
  /** Events of this run, whether they were new to the read models or not. */
  readonly eventsSeen: number;
  /** What keeps it from going on: a store that is away, or the event that it halted at. */
  readonly problem: string | null;
}

/** A feed that projectors divide among them, and where they note how far each has come. */
export interface SharedSource {
  readonly feed: SharedFeed;
  readonly shares: ProjectionShares;
}

export interface ProjectionLoopParts {
  /** The log itself. */
  readonly feed: EventFeed;
  /** Followed instead of the log, once the read models hold the whole log and for as long as it can be followed. */
  readonly shared?: SharedSource;
  readonly state: ProjectionState;
  readonly projector: Projector;
  /** Where the checkpoint may count what a store has lost (see `Trail`): how far to go back then. */
  readonly trail?: Trail;
  /** Told of every batch that could not be applied yet, and of the event that halts the loop. */
  readonly onProblem: (error: unknown, progress: ProjectionProgress) => void;
  /** Told why the shared feed could not be followed any further. */
  readonly onLost?: (reason: string) => void;
  readonly onProgress?: (progress: ProjectionProgress) => void;
  /** Events applied at a time; the feed's default if absent. */
  readonly maxBatch?: number;
  /** Folds the whole log, even where a projector beside this one has a checkpoint already. */
  readonly fromStart?: boolean;
}

/** Saving after each item would cost a round trip; the checkpoint is only a hint where to start. */
const SAVE_EVERY_MS = 200;
const CHECK_EVERY_MS = 1_000;
/** How often it is asked whether the shared feed can be followed. */
const ASK_EVERY_MS = 2_000;
/** At an event, with errors that are no store's: a mistake in a projection, which does not go away by itself. */
const MOST_TRIES = 3;

/**
 * Feed -> read models: joins the current building of the read models at its checkpoint, applies, saves.
 *
 * A store that is away is waited for with the same batch in hand, so nothing is dropped. Read models that
 * were emptied or set back (a rebuild, a lost Redis, a failover) are noticed, and the loop goes back to
 * their checkpoint. A corrupt event halts it, loudly, and so does one at which a projection fails each time.
 *
 * With a shared feed, the log is followed to its end first, and handed over from there: see `#handOver`. What the
 * shared feed cannot give any more is read from the log in the same way, from the checkpoint on.
 */
export class ProjectionLoop {
  readonly #parts: ProjectionLoopParts;
  /** The event that could not be applied last, though no store is to blame. */
  #failing: { readonly name: string; readonly tries: number } | null = null;
  #progress: ProjectionProgress = {
    phase: 'catching-up',
    position: null,
    source: 'log',
    eventsSeen: 0,
    problem: null,
  };
  #savedMs = 0;
  #restart: AbortController | null = null;
  /** The handover whose shares could not be followed any further. */
  #lost: string | null = null;
  /** What was applied is to be gone through again from the oldest note on, whatever the checkpoint says. */
  #isGoingBack = false;
  /** Of the shared feed, as they were before the log is followed to its end. */
  #ends: readonly ShareEnd[] | null = null;

  constructor(parts: ProjectionLoopParts) {
    this.#parts = parts;
  }

  get progress(): ProjectionProgress {
    return this.#progress;
  }

  /** Goes back to the checkpoint: Redis was away, and may have come back with less than it had. */
  restart(): void {
    this.#restart?.abort();
  }

  /** The same, where the checkpoint may have been kept by another store than what it counts: as far as the trail. */
  goBack(): void {
    this.#isGoingBack = this.#parts.trail !== undefined;
    this.restart();
  }

  /** Runs until `signal` aborts; returns earlier only when an event has halted it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#progress.phase !== 'halted') {
      const restart = new AbortController();
      this.#restart = restart;
      const until = AbortSignal.any([signal, restart.signal]);
      const begun = await this.#untilDone(until, () => this.#begin());
      if (begun === undefined) continue;
      const { start, saved } = begun;
      // Shares cannot be gone back in by time, so the log is read then, and handed over again.
      if (saved === null || saved.handover === this.#lost || this.#isGoingBack)
        await this.#followLog(start, saved, until);
      else await this.#followShares(start, saved, until);
    }
  }

  async #begin(): Promise<{ readonly start: ProjectionStart; readonly saved: SavedShares | null }> {
    const { state, shared, trail, fromStart } = this.#parts;
    const start = await state.begin();
    if (fromStart === true) return { start: { ...start, from: 'start' }, saved: null };
    trail?.begin(start);
    const from = this.#isGoingBack ? earlier(start.from, trail?.oldest ?? start.from) : start.from;
    return { start: { ...start, from }, saved: (await shared?.shares.read(start.build)) ?? null };
  }

  async #followLog(start: ProjectionStart, saved: SavedShares | null, signal: AbortSignal): Promise<void> {
    const { feed, projector, maxBatch } = this.#parts;
    const { from, build } = start;
    const ends = this.#ends;
    this.#ends = null;
    this.#report({ phase: 'catching-up', position: from === 'start' ? null : from, source: 'log' });
    const bookmark = new LogBookmark(this.#parts.state, build, () => this.#progress.position);
    const { streamPrefixes } = projector;
    const items = feed.subscribe({ from, streamPrefixes, signal, ...(maxBatch !== undefined && { maxBatch }) });
    const followed = new AbortController();
    let isAsking = false;
    await this.#follow(items, bookmark, signal, async () => {
      if (ends !== null) return this.#handOver(build, saved, ends);
      if (!isAsking) void this.#askForEnds(saved, AbortSignal.any([signal, followed.signal]));
      isAsking = true;
    });
    followed.abort();
  }

  /**
   * The log was followed to its end, which lay behind all that was in the shared feed when its ends were asked for. So
   * from these on the shares can be followed.
   */
  async #handOver(build: string, saved: SavedShares | null, ends: readonly ShareEnd[]): Promise<void> {
    const { position } = this.#progress;
    if (position === null) return;
    await this.#parts.shared?.shares.handOver(build, saved?.handover ?? null, { position, ends });
    // Also where another projector was quicker: its shares are as good.
    this.restart();
  }

  /** Begins again as soon as the shared feed has ends, to come to the end of the log after them. */
  async #askForEnds(saved: SavedShares | null, signal: AbortSignal): Promise<void> {
    const { shared } = this.#parts;
    if (shared === undefined) return;
    // What was lost just now may be lost again.
    if (saved !== null) await pause(ASK_EVERY_MS, signal);
    while (!signal.aborted) {
      const ends = await shared.feed.ends();
      if (signal.aborted) return;
      if (ends !== null) {
        this.#ends = ends;
        return this.restart();
      }
      await pause(ASK_EVERY_MS, signal);
    }
  }

  async #followShares(start: ProjectionStart, saved: SavedShares, signal: AbortSignal): Promise<void> {
    const { shared, projector, maxBatch } = this.#parts;
    if (shared === undefined) return;
    const { build, from } = start;
    const { handover } = saved;
    // By the time that the log is followed again, they may be those of another topic.
    this.#ends = null;
    this.#report({ phase: 'catching-up', position: from === 'start' ? null : from, source: [] });
    const bookmark = new SharesBookmark(shared.shares, build, handover, ({ position, held }) =>
      this.#report({ source: held, ...(position !== null && { position }) }),
    );
    const { streamPrefixes } = projector;
    const items = shared.feed.subscribe({
      streamPrefixes,
      signal,
      ...(maxBatch !== undefined && { maxBatch }),
      marks: async () => {
        const now = await shared.shares.read(build);
        if (now?.handover === handover) return now.marks;
        this.restart();
        return [];
      },
    });
    await this.#follow(
      items,
      bookmark,
      signal,
      async () => undefined,
      (reason) => {
        this.#lost = handover;
        this.#parts.onLost?.(reason);
      },
    );
  }

  async #follow(
    items: AsyncIterable<FeedItem | SharedFeedItem>,
    bookmark: Bookmark,
    signal: AbortSignal,
    onCaughtUp: () => Promise<void>,
    onLost?: (reason: string) => void,
  ): Promise<void> {
    const watch = setInterval(() => void this.#check(bookmark, signal), CHECK_EVERY_MS);
    try {
      for await (const item of items) {
        if (item.kind === 'lost') {
          onLost?.(item.reason);
          return this.restart();
        }
        const taken = await this.#untilDone(signal, () => this.#take(item, bookmark, signal));
        if (taken === undefined) return;
        if (!taken) return this.restart();
        if (item.kind === 'caught-up') await this.#untilDone(signal, onCaughtUp);
      }
    } finally {
      clearInterval(watch);
    }
  }

  /** @returns false if the read models, or what is noted of them, are no longer those that were begun with */
  async #take(
    item: Exclude<FeedItem | SharedFeedItem, { kind: 'lost' }>,
    bookmark: Bookmark,
    signal: AbortSignal,
  ): Promise<boolean> {
    switch (item.kind) {
      case 'events':
        await this.#apply(item.events);
        return this.#save(bookmark, false, signal);
      case 'checkpoint':
        this.#reached(item.position);
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
        this.#isGoingBack = false;
        this.#report({ phase: 'live' });
        return true;
    }
  }

  /** What stands before an event that cannot be applied is applied, so that the loop halts at that very event. */
  async #apply(events: readonly StoredEvent[]): Promise<void> {
    try {
      await this.#applyBatch(events);
      this.#failing = null;
    } catch (error) {
      if (isOfStore(error)) throw error;
      for (const event of events) await this.#applyAlone(event);
    }
  }

  /** @throws CorruptEventError also where the projection has failed at this very event often enough */
  async #applyAlone(event: StoredEvent): Promise<void> {
    try {
      await this.#applyBatch([event]);
    } catch (error) {
      if (isOfStore(error) || error instanceof CorruptEventError) throw error;
      const name = `${event.type} ${event.stream}@${event.revision}`;
      const tries = this.#failing?.name === name ? this.#failing.tries + 1 : 1;
      this.#failing = { name, tries };
      if (tries < MOST_TRIES) throw error;
      throw new CorruptEventError(`${name} cannot be applied: ${String(error)}`, { cause: error });
    }
  }

  async #applyBatch(events: readonly StoredEvent[]): Promise<void> {
    const repairLists = this.#progress.phase === 'catching-up';
    await this.#parts.projector.applyStored(events, { repairLists });
    this.#report({ eventsSeen: this.#progress.eventsSeen + events.length });
    // Of shares only a mark says how far they are.
    if (this.#progress.source === 'log') this.#reached(events.at(-1)?.position ?? null);
  }

  #reached(position: GlobalPosition | null): void {
    if (position !== null) this.#report({ position });
  }

  async #save(bookmark: Bookmark, atOnce: boolean, signal: AbortSignal, complete = atOnce): Promise<boolean> {
    // Redis came back meanwhile, perhaps without some of what was applied: a checkpoint of ours would skip that.
    if (signal.aborted) return true;
    if (!atOnce && Date.now() - this.#savedMs < SAVE_EVERY_MS) return true;
    const saved = await bookmark.save(complete);
    this.#savedMs = Date.now();
    const { phase, position } = this.#progress;
    if (phase === 'live' && position !== null) this.#parts.trail?.note(position);
    return saved;
  }

  /** Emptied read models are noticed even while no event comes in. */
  async #check(bookmark: Bookmark, signal: AbortSignal): Promise<void> {
    try {
      if (!(await bookmark.isCurrent())) this.restart();
      // What was applied since the last save is saved now, so that a restart does not repeat it.
      else if (Date.now() - this.#savedMs >= CHECK_EVERY_MS) await this.#save(bookmark, true, signal, false);
    } catch {
      // Redis is away: the loop itself waits for it, and is restarted when the connection is back.
    }
  }

  /** Repeats `work` while a store is away. @returns undefined when stopped or halted */
  async #untilDone<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const result = await work();
        if (this.#progress.problem !== null) this.#report({ problem: null });
        return result;
      } catch (error) {
        const halted = error instanceof CorruptEventError;
        const problem = error instanceof Error ? error.message : String(error);
        this.#report({ problem, ...(halted && { phase: 'halted' as const }) });
        this.#parts.onProblem(error, this.#progress);
        if (halted) return undefined;
        await pause(backoffMs(failures, { maxMs: 2_000 }), signal);
      }
    }
    return undefined;
  }

  #report(change: Partial<ProjectionProgress>): void {
    this.#progress = { ...this.#progress, ...change };
    this.#parts.onProgress?.(this.#progress);
  }
}

/** What Redis answers to a command, such as that a key is of another kind, an operator may mend at any time. */
function isOfStore(error: unknown): boolean {
  return error instanceof Fault || (error instanceof Error && error.name === 'ReplyError');
}

function earlier(one: ProjectionStart['from'], other: ProjectionStart['from']): ProjectionStart['from'] {
  if (one === 'start' || other === 'start') return 'start';
  return comparePositions(one, other) <= 0 ? one : other;
}
