import {
  comparePositions,
  type LogFeed,
  type PartitionedFeed,
  type PartitionEnd,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';
import {
  earlier,
  type PartitionCheckpoints,
  type ProjectionStart,
  type ProjectionState,
  type Projector,
  type SavedPartitions,
} from '#libs/platform/readmodel/index.ts';
import { parseStreamName } from '#libs/platform/streams/index.ts';
import { partitionCheckpointWriter } from './checkpoint-writers.ts';
import { Follower } from './follower.ts';
import { ProgressReport, type ProjectionProgress } from './progress.ts';
import type { RecentCheckpoints } from './recent-checkpoints.ts';

/** A feed that projectors divide among them, and the checkpoints of its partitions. */
export interface PartitionedSource {
  readonly feed: PartitionedFeed;
  readonly partitions: PartitionCheckpoints;
}

interface ProjectionLoopParts {
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
  /** How long partitions may make no progress while the log has later events. Default 15,000. */
  readonly behindMs?: number;
  /** Folds the whole log, even where a projector beside this one has a checkpoint already. */
  readonly fromStart?: boolean;
}

/** Where to resume. */
interface Beginning {
  readonly start: ProjectionStart;
  /** Null while the read models are kept up to date from the log alone. */
  readonly saved: SavedPartitions | null;
}

/** The log or the partitions that the loop follows from the saved checkpoints. */
type State =
  /** With the ends of the partitions, all that they contain is applied at the end of the log, and they follow. */
  | { readonly follows: 'log'; readonly ends: readonly PartitionEnd[] | null }
  /** Of the saved handover. */
  | { readonly follows: 'partitions' };

const LOG: State = { follows: 'log', ends: null };
const PARTITIONS: State = { follows: 'partitions' };

const READ_ENDS_EVERY_MS = 2_000;
const BEHIND_MS = 15_000;
const COMPARE_EVERY_MS = 1_000;

/**
 * Feed -> read models: joins the current builds at the least of their checkpoints, applies events, saves.
 *
 * While a store is unavailable, the same batch is retried, so nothing is dropped. When read models were deleted or set
 * back (a rebuild, a lost Redis, a failover), the loop goes back to their checkpoints. A corrupt event halts it, and so
 * does an event at which a projection fails each time.
 *
 * With partitions, the log is followed to its end, then the ends of the partitions are read, then the log is followed to
 * its end once more: everything before the ends is applied then, and the partitions are followed from there. When they
 * are lost, the log is followed again in the same way, from the checkpoints.
 *
 * Partitions hold what a relay has published, and it may lag behind or be stuck. So the log is followed to its end before
 * the first partitions, and again when partitions make no progress although the log has later events.
 */
export class ProjectionLoop {
  readonly #parts: ProjectionLoopParts;
  readonly #progress: ProgressReport;
  readonly #follower: Follower;
  #restart: AbortController | null = null;
  /** Applies events again from the oldest recent checkpoint, whatever the saved checkpoints are. */
  #isGoingBack = false;
  /** The handover whose partitions could not be followed any further. */
  #lostHandover: string | null = null;

  constructor(parts: ProjectionLoopParts) {
    this.#parts = parts;
    this.#progress = new ProgressReport(parts.onProgress, parts.onProblem);
    this.#follower = new Follower({
      projector: parts.projector,
      progress: this.#progress,
      recent: parts.recent,
      witness: parts.state.witness,
      onLive: () => (this.#isGoingBack = false),
      onStale: () => this.restart(),
    });
  }

  get progress(): ProjectionProgress {
    return this.#progress.now;
  }

  /** Begins again from the checkpoints: Redis was unavailable, and may have lost writes. */
  restart(): void {
    this.#restart?.abort();
  }

  /** Begins again from the recent checkpoints if the saved ones are on another node than the read models. */
  goBack(): void {
    this.#isGoingBack = this.#parts.recent !== undefined;
    this.restart();
  }

  /** Runs until `signal` aborts; returns earlier only when an event has halted it. */
  async run(signal: AbortSignal): Promise<void> {
    let state = LOG;
    while (!signal.aborted && this.progress.phase !== 'halted') {
      const restart = new AbortController();
      this.#restart = restart;
      const until = AbortSignal.any([signal, restart.signal]);
      const beginning = await this.#progress.untilDone(until, () => this.#begin());
      if (beginning !== undefined) state = await this.#follow(state, beginning, until);
      // Ends what is still running for this feed before the next one begins.
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

  /** @returns the state after this one */
  #follow(state: State, beginning: Beginning, signal: AbortSignal): Promise<State> {
    if (state.follows === 'log') return this.#followLog(beginning, state.ends, signal);
    const { start, saved } = beginning;
    return this.#isUsable(saved)
      ? this.#followPartitions(start, saved.handover, signal)
      : this.#followLog(beginning, null, signal);
  }

  /** Partitions have no recent checkpoints: after going back, the log is followed, and handed over again. */
  #isUsable(saved: SavedPartitions | null): saved is SavedPartitions {
    return saved !== null && saved.handover !== this.#lostHandover && !this.#isGoingBack;
  }

  /** Follows the log until its partitions can be followed, or their ends are read. */
  async #followLog(beginning: Beginning, ends: readonly PartitionEnd[] | null, signal: AbortSignal): Promise<State> {
    const { feed, state } = this.#parts;
    const { start, saved } = beginning;
    const { from } = start;
    this.#progress.report({ phase: 'catching-up', position: from === 'start' ? null : from, source: 'log' });
    let next = LOG;
    const enter = (following: State): void => {
      next = following;
      this.restart();
    };
    let reading: Promise<void> | null = null;
    const readEnds = async (): Promise<void> => {
      const read = await this.#readEnds(beginning, signal);
      if (read !== null) enter({ follows: 'log', ends: read });
    };
    const onCaughtUp = async (): Promise<void> => {
      if (this.#isUsable(saved)) enter(PARTITIONS);
      else if (ends === null) reading ??= readEnds();
      else if (await this.#handOver(beginning, ends)) enter(PARTITIONS);
    };
    const items = feed.subscribe({ from, signal, ...this.#subscription() });
    const save = (complete: boolean): Promise<boolean> => state.save(start, this.progress.position, complete);
    await this.#follower.follow({ items, checkpoints: { save }, onCaughtUp, isAhead: isAheadOf(start) }, signal);
    return next;
  }

  /** @returns false before the first position of the log */
  async #handOver({ start, saved }: Beginning, ends: readonly PartitionEnd[]): Promise<boolean> {
    const { position } = this.progress;
    if (position === null) return false;
    // If another projector was faster, its handover is as good.
    await this.#parts.partitioned?.partitions.handOver(start, saved?.handover ?? null, { position, ends });
    return true;
  }

  /** @returns the ends of the partitions as soon as they have any; null without partitions, or when the signal aborts */
  async #readEnds({ saved }: Beginning, signal: AbortSignal): Promise<readonly PartitionEnd[] | null> {
    const { partitioned, feed } = this.#parts;
    if (partitioned === undefined) return null;
    // Partitions that were lost just now may be lost again.
    if (saved !== null) await pause(READ_ENDS_EVERY_MS, signal);
    const head = await feed.head().catch(() => null);
    while (!signal.aborted) {
      const ends = await partitioned.feed.ends(head);
      if (signal.aborted) break;
      if (ends !== null) return ends;
      await pause(READ_ENDS_EVERY_MS, signal);
    }
    return null;
  }

  /** Follows the partitions until they are lost, or their handover is replaced. */
  async #followPartitions(start: ProjectionStart, handover: string, signal: AbortSignal): Promise<State> {
    const { partitioned } = this.#parts;
    if (partitioned === undefined) return LOG;
    const { feed, partitions } = partitioned;
    this.#progress.report({ phase: 'catching-up', position: start.from === 'start' ? null : start.from, source: [] });
    const checkpoints = partitionCheckpointWriter(partitions, start, handover, ({ position, held }) =>
      this.#progress.report({ source: held, ...(position !== null && { position }) }),
    );
    const from = async () => {
      const now = await partitions.read(start);
      if (now?.handover === handover) return now.checkpoints;
      this.restart();
      return [];
    };
    const behind = new AbortController();
    const until = AbortSignal.any([signal, behind.signal]);
    void this.#watchProgress(until, () => behind.abort());
    const items = feed.subscribe({ from, signal: until, ...this.#subscription() });
    const ended = await this.#follower.follow({ items, checkpoints }, until);
    const isBehind = behind.signal.aborted && !signal.aborted;
    behind.abort();
    const lost = isBehind ? 'its partitions make no progress, although the log has later events' : ended;
    if (lost === null) return PARTITIONS;
    this.#lostHandover = handover;
    this.#parts.onLost?.(lost);
    return LOG;
  }

  /** Calls `onBehind` when the position has not changed for a while, and the log has later events. */
  async #watchProgress(signal: AbortSignal, onBehind: () => void): Promise<void> {
    const { feed, behindMs = BEHIND_MS } = this.#parts;
    let last = this.progress.position;
    let sinceMs = Date.now();
    for (; !signal.aborted; await pause(COMPARE_EVERY_MS, signal)) {
      const { position, problem } = this.progress;
      // While a store is unavailable, the log could not be followed either.
      const head = problem === null ? await feed.head().catch(() => null) : null;
      const isAtEnd = head === null || (position !== null && comparePositions(position, head) >= 0);
      if (isAtEnd || (position !== null && (last === null || comparePositions(position, last) > 0))) {
        last = position;
        sinceMs = Date.now();
      } else if (Date.now() - sinceMs >= behindMs) {
        return onBehind();
      }
    }
  }

  #subscription() {
    const { maxBatch, projector } = this.#parts;
    return { streamPrefixes: projector.streamPrefixes, ...(maxBatch !== undefined && { maxBatch }) };
  }
}

/** Selects events that the read models of their category held already at the start. */
function isAheadOf({ checkpoints }: ProjectionStart): (event: StoredEvent) => boolean {
  return ({ stream, position }) => {
    const checkpoint = checkpoints.get(parseStreamName(stream).category) ?? 'start';
    return checkpoint !== 'start' && position !== null && comparePositions(position, checkpoint) <= 0;
  };
}
