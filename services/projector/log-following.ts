import { comparePositions } from '#libs/platform/eventstore/index.ts';
import type { EventFeed, ShareEnd, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';
import { parseStreamName } from '#libs/platform/readmodel/index.ts';
import type { ProjectionStart, ProjectionState, Projector } from '#libs/platform/readmodel/index.ts';
import { LogBookmark } from './bookmarks.ts';
import type { Follower } from './follower.ts';
import type { ProgressReport } from './progress.ts';
import type { Beginning, SharedSource } from './shares-following.ts';

export interface LogFollowingParts {
  readonly feed: EventFeed;
  /** What the log is handed over to; absent where it is followed for good. */
  readonly shared: SharedSource | undefined;
  readonly state: ProjectionState;
  readonly projector: Projector;
  readonly maxBatch: number | undefined;
  readonly follower: Follower;
  readonly progress: ProgressReport;
  /** Begins again, from what is saved. */
  readonly restart: () => void;
}

/** How often it is asked whether the shared feed can be followed. */
const ASK_EVERY_MS = 2_000;

/** Follows the log itself, and hands over to the shared feed where there is one: see `#handOver`. */
export class LogFollowing {
  readonly #parts: LogFollowingParts;
  /** Of the shared feed, as they were before the log is followed to its end. */
  #ends: readonly ShareEnd[] | null = null;

  constructor(parts: LogFollowingParts) {
    this.#parts = parts;
  }

  async follow(beginning: Beginning, signal: AbortSignal): Promise<void> {
    const { feed, follower, maxBatch, progress, projector, state } = this.#parts;
    const { start } = beginning;
    const { from } = start;
    const ends = this.#ends;
    this.#ends = null;
    progress.report({ phase: 'catching-up', position: from === 'start' ? null : from, source: 'log' });
    const bookmark = new LogBookmark(state, start, () => progress.now.position);
    const { streamPrefixes } = projector;
    const items = feed.subscribe({ from, streamPrefixes, signal, ...(maxBatch !== undefined && { maxBatch }) });
    const followed = new AbortController();
    let isAsking = false;
    const onCaughtUp = async (): Promise<void> => {
      if (ends !== null) return this.#handOver(beginning, ends);
      if (!isAsking) void this.#askForEnds(beginning, AbortSignal.any([signal, followed.signal]));
      isAsking = true;
    };
    await follower.follow({ items, bookmark, onCaughtUp, isAhead: isAheadOf(start) }, signal);
    followed.abort();
  }

  /** By the time that the log is followed again, they may be those of another topic. */
  forgetEnds(): void {
    this.#ends = null;
  }

  /**
   * The log was followed to its end, which lay behind all that was in the shared feed when its ends were asked for. So
   * from these on the shares can be followed.
   */
  async #handOver({ start, saved }: Beginning, ends: readonly ShareEnd[]): Promise<void> {
    const { progress, restart, shared } = this.#parts;
    const { position } = progress.now;
    if (position === null) return;
    await shared?.shares.handOver(start, saved?.handover ?? null, { position, ends });
    // Also where another projector was quicker: its shares are as good.
    restart();
  }

  /** Begins again as soon as the shared feed has ends, to come to the end of the log after them. */
  async #askForEnds({ saved }: Beginning, signal: AbortSignal): Promise<void> {
    const { restart, shared } = this.#parts;
    if (shared === undefined) return;
    // What was lost just now may be lost again.
    if (saved !== null) await pause(ASK_EVERY_MS, signal);
    while (!signal.aborted) {
      const ends = await shared.feed.ends();
      if (signal.aborted) return;
      if (ends !== null) {
        this.#ends = ends;
        return restart();
      }
      await pause(ASK_EVERY_MS, signal);
    }
  }
}

/** Whether the read models of an event's category had come further than the event when they were begun with. */
function isAheadOf({ checkpoints }: ProjectionStart): (event: StoredEvent) => boolean {
  return ({ stream, position }) => {
    const checkpoint = checkpoints.get(parseStreamName(stream).category) ?? 'start';
    return checkpoint !== 'start' && position !== null && comparePositions(position, checkpoint) <= 0;
  };
}
