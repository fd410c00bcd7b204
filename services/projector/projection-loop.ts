import type { EventFeed } from '#libs/platform/eventstore/index.ts';
import { earlier } from '#libs/platform/readmodel/index.ts';
import type { ProjectionStart, ProjectionState, Projector } from '#libs/platform/readmodel/index.ts';
import { Attempts } from './attempts.ts';
import { EventApplier } from './event-applier.ts';
import { Follower } from './follower.ts';
import { LogFollowing } from './log-following.ts';
import { ProgressReport } from './progress.ts';
import type { ProjectionProgress } from './progress.ts';
import { SharesFollowing } from './shares-following.ts';
import type { Beginning, SharedSource } from './shares-following.ts';
import type { Trail } from './trail.ts';

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

/**
 * Feed -> read models: joins the current building of the read models at its checkpoint, applies, saves.
 *
 * A store that is away is waited for with the same batch in hand, so nothing is dropped. Read models that
 * were emptied or set back (a rebuild, a lost Redis, a failover) are noticed, and the loop goes back to
 * their checkpoint. A corrupt event halts it, loudly, and so does one at which a projection fails each time.
 *
 * With a shared feed, the log is followed to its end first, and handed over from there: see `LogFollowing`. What the
 * shared feed cannot give any more is read from the log in the same way, from the checkpoint on.
 */
export class ProjectionLoop {
  readonly #parts: ProjectionLoopParts;
  readonly #progress: ProgressReport;
  readonly #attempts: Attempts;
  readonly #log: LogFollowing;
  readonly #shares: SharesFollowing | null;
  #restart: AbortController | null = null;
  /** What was applied is to be gone through again from the oldest note on, whatever the checkpoint says. */
  #isGoingBack = false;

  constructor(parts: ProjectionLoopParts) {
    const { feed, shared, state, projector, trail, maxBatch, onLost } = parts;
    this.#parts = parts;
    const progress = (this.#progress = new ProgressReport(parts.onProgress));
    const attempts = (this.#attempts = new Attempts(progress, parts.onProblem));
    const restart = (): void => this.restart();
    const follower = new Follower({
      applier: new EventApplier(projector, progress),
      attempts,
      progress,
      trail,
      witness: state.witness,
      onLive: () => (this.#isGoingBack = false),
      onStale: restart,
    });
    const common = { projector, maxBatch, follower, progress, restart };
    this.#log = new LogFollowing({ ...common, feed, state, shared });
    this.#shares = shared === undefined ? null : new SharesFollowing({ ...common, ...shared, onLost });
  }

  get progress(): ProjectionProgress {
    return this.#progress.now;
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
    while (!signal.aborted && this.progress.phase !== 'halted') {
      const restart = new AbortController();
      this.#restart = restart;
      const until = AbortSignal.any([signal, restart.signal]);
      const beginning = await this.#attempts.untilDone(until, () => this.#begin());
      if (beginning !== undefined) await this.#follow(beginning, until);
      // Whatever is under way still must not be taken for what is followed next.
      restart.abort();
    }
  }

  async #begin(): Promise<Beginning> {
    const { state, shared, trail, fromStart } = this.#parts;
    const start = await state.begin();
    if (fromStart === true) return { start: { ...start, from: 'start', checkpoints: new Map() }, saved: null };
    trail?.begin(start);
    const oldest = trail?.oldest ?? null;
    const isLater = (at: ProjectionStart['from']): boolean => oldest !== null && earlier(at, oldest) !== at;
    if (this.#isGoingBack && oldest !== null && [...start.checkpoints.values()].some(isLater)) {
      await state.setBack(start, oldest);
      return this.#begin();
    }
    return { start, saved: (await shared?.shares.read(start)) ?? null };
  }

  async #follow({ start, saved }: Beginning, signal: AbortSignal): Promise<void> {
    // Shares cannot be gone back in by time, so the log is read then, and handed over again.
    if (saved === null || this.#isGoingBack || this.#shares?.canFollow(saved) !== true) {
      return this.#log.follow({ start, saved }, signal);
    }
    this.#log.forgetEnds();
    return this.#shares.follow(start, saved, signal);
  }
}
