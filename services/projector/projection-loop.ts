import type { LogFeed } from '#libs/platform/eventstore/index.ts';
import { earlier } from '#libs/platform/readmodel/index.ts';
import type { ProjectionStart, ProjectionState, Projector } from '#libs/platform/readmodel/index.ts';
import { EventApplier } from './event-applier.ts';
import { Follower } from './follower.ts';
import { ProgressReport } from './progress.ts';
import type { ProjectionProgress } from './progress.ts';
import { LogSource, PartitionSource } from './sources.ts';
import type { Beginning, PartitionedSource } from './sources.ts';
import type { RecentCheckpoints } from './recent-checkpoints.ts';

export interface ProjectionLoopParts {
  /** The log itself. */
  readonly feed: LogFeed;
  /** Followed instead of the log, once the read models hold the whole log and for as long as it can be followed. */
  readonly partitioned?: PartitionedSource;
  readonly state: ProjectionState;
  readonly projector: Projector;
  /** How far to go back where a saved checkpoint may include writes that were lost (see `RecentCheckpoints`). */
  readonly recent?: RecentCheckpoints;
  /** Receives the error of each batch that could not be applied yet, and of the event that halts the loop. */
  readonly onProblem: (error: unknown, progress: ProjectionProgress) => void;
  /** Receives why the partitions could not be followed any further. */
  readonly onLost?: (reason: string) => void;
  readonly onProgress?: (progress: ProjectionProgress) => void;
  /** Events applied at a time; the feed's default if absent. */
  readonly maxBatch?: number;
  /** Folds the whole log, even where a projector beside this one has a checkpoint already. */
  readonly fromStart?: boolean;
}

/**
 * Feed -> read models: joins the current builds at the least of their checkpoints, applies events, saves.
 *
 * While a store is unavailable, the same batch is retried, so nothing is dropped. When read models were deleted or set
 * back (a rebuild, a lost Redis, a failover), the loop goes back to their checkpoints. A corrupt event halts it, and so
 * does an event at which a projection fails each time.
 *
 * With partitions, the log is followed to its end first, and handed over from there: see `LogSource`. When the partitions
 * are lost, the log is followed again in the same way, from the checkpoints.
 */
export class ProjectionLoop {
  readonly #parts: ProjectionLoopParts;
  readonly #progress: ProgressReport;
  readonly #log: LogSource;
  readonly #partitions: PartitionSource;
  #restart: AbortController | null = null;
  /** Applies events again from the oldest recent checkpoint, whatever the saved checkpoints are. */
  #isGoingBack = false;

  constructor(parts: ProjectionLoopParts) {
    const { feed, partitioned, state, projector, recent, maxBatch, onLost } = parts;
    this.#parts = parts;
    const progress = (this.#progress = new ProgressReport(parts.onProgress, parts.onProblem));
    const restart = (): void => this.restart();
    const follower = new Follower({
      applier: new EventApplier(projector, progress),
      progress,
      recent,
      witness: state.witness,
      onLive: () => (this.#isGoingBack = false),
      onStale: restart,
    });
    const { streamPrefixes } = projector;
    const source = { partitioned, streamPrefixes, maxBatch, follower, progress, restart };
    this.#log = new LogSource({ ...source, feed, state });
    this.#partitions = new PartitionSource(source, onLost);
  }

  get progress(): ProjectionProgress {
    return this.#progress.now;
  }

  /** Begins again from the checkpoints: Redis was unavailable, and may have lost writes. */
  restart(): void {
    this.#restart?.abort();
  }

  /** The same, from the recent checkpoints if the saved ones are on another node than the read models. */
  goBack(): void {
    this.#isGoingBack = this.#parts.recent !== undefined;
    this.restart();
  }

  /** Runs until `signal` aborts; returns earlier only when an event has halted it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.progress.phase !== 'halted') {
      const restart = new AbortController();
      this.#restart = restart;
      const until = AbortSignal.any([signal, restart.signal]);
      const beginning = await this.#progress.untilDone(until, () => this.#begin());
      if (beginning !== undefined) await this.#follow(beginning, until);
      // Ends what is still running for this source before the next one begins.
      restart.abort();
    }
  }

  async #begin(): Promise<Beginning> {
    const { state, partitioned, recent, fromStart } = this.#parts;
    const start = await state.begin();
    if (fromStart === true) return { start: { ...start, from: 'start', checkpoints: new Map() }, saved: null };
    recent?.begin(start);
    const oldest = recent?.oldest ?? null;
    const isLater = (at: ProjectionStart['from']): boolean => oldest !== null && earlier(at, oldest) !== at;
    if (this.#isGoingBack && oldest !== null && [...start.checkpoints.values()].some(isLater)) {
      await state.setBack(start, oldest);
      return this.#begin();
    }
    return { start, saved: (await partitioned?.partitions.read(start)) ?? null };
  }

  async #follow({ start, saved }: Beginning, signal: AbortSignal): Promise<void> {
    // Partitions have no recent checkpoints: the log is followed then, and handed over again.
    if (this.#isGoingBack || !this.#partitions.canFollow(saved)) return this.#log.follow({ start, saved }, signal);
    this.#log.forgetEnds();
    return this.#partitions.follow(start, saved, signal);
  }
}
