/** What a projector can follow: the whole log, or the partitions that a feed assigns to it. */
import { comparePositions } from '#libs/platform/eventstore/index.ts';
import type { LogFeed, PartitionedFeed, PartitionEnd, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';
import { parseStreamName } from '#libs/platform/readmodel/index.ts';
import type {
  PartitionCheckpoints,
  ProjectionStart,
  ProjectionState,
  SavedPartitions,
} from '#libs/platform/readmodel/index.ts';
import { LogCheckpointWriter, PartitionCheckpointWriter } from './checkpoint-writers.ts';
import type { Follower } from './follower.ts';
import type { ProgressReport } from './progress.ts';

/** A feed that projectors divide among them, and the checkpoints of its partitions. */
export interface PartitionedSource {
  readonly feed: PartitionedFeed;
  readonly partitions: PartitionCheckpoints;
}

/** Where to resume. */
export interface Beginning {
  readonly start: ProjectionStart;
  /** Null while the read models are kept up to date from the log alone. */
  readonly saved: SavedPartitions | null;
}

export interface SourceParts {
  readonly partitioned: PartitionedSource | undefined;
  readonly streamPrefixes: readonly string[];
  readonly maxBatch: number | undefined;
  readonly follower: Follower;
  readonly progress: ProgressReport;
  /** Begins again, from what is saved. */
  readonly restart: () => void;
}

const READ_ENDS_EVERY_MS = 2_000;

/** Follows the log itself, and hands over to the partitions of the other feed where there is one: see `#handOver`. */
export class LogSource {
  readonly #parts: SourceParts & { readonly feed: LogFeed; readonly state: ProjectionState };
  /** Ends of the partitions, read before the log is followed to its end. */
  #ends: readonly PartitionEnd[] | null = null;

  constructor(parts: SourceParts & { readonly feed: LogFeed; readonly state: ProjectionState }) {
    this.#parts = parts;
  }

  async follow(beginning: Beginning, signal: AbortSignal): Promise<void> {
    const { feed, follower, maxBatch, progress, state, streamPrefixes } = this.#parts;
    const { start } = beginning;
    const { from } = start;
    const ends = this.#ends;
    this.#ends = null;
    progress.report({ phase: 'catching-up', position: from === 'start' ? null : from, source: 'log' });
    const checkpoints = new LogCheckpointWriter(state, start, () => progress.now.position);
    const items = feed.subscribe({ from, streamPrefixes, signal, ...(maxBatch !== undefined && { maxBatch }) });
    const followed = new AbortController();
    let isReadingEnds = false;
    const onCaughtUp = async (): Promise<void> => {
      if (ends !== null) return this.#handOver(beginning, ends);
      if (!isReadingEnds) void this.#readEnds(beginning, AbortSignal.any([signal, followed.signal]));
      isReadingEnds = true;
    };
    await follower.follow({ items, checkpoints, onCaughtUp, isAhead: isAheadOf(start) }, signal);
    followed.abort();
  }

  /** When the log is followed again, they may be those of another topic. */
  forgetEnds(): void {
    this.#ends = null;
  }

  /**
   * The log was followed to its end after the ends of the partitions were read, so everything before these ends is
   * applied, and the partitions can be followed from there.
   */
  async #handOver({ start, saved }: Beginning, ends: readonly PartitionEnd[]): Promise<void> {
    const { progress, restart, partitioned } = this.#parts;
    const { position } = progress.now;
    if (position === null) return;
    await partitioned?.partitions.handOver(start, saved?.handover ?? null, { position, ends });
    // If another projector was faster, its handover is as good.
    restart();
  }

  /** Begins again as soon as the partitions have ends, to reach the end of the log after them. */
  async #readEnds({ saved }: Beginning, signal: AbortSignal): Promise<void> {
    const { restart, partitioned } = this.#parts;
    if (partitioned === undefined) return;
    // What was lost just now may be lost again.
    if (saved !== null) await pause(READ_ENDS_EVERY_MS, signal);
    while (!signal.aborted) {
      const ends = await partitioned.feed.ends();
      if (signal.aborted) return;
      if (ends !== null) {
        this.#ends = ends;
        return restart();
      }
      await pause(READ_ENDS_EVERY_MS, signal);
    }
  }
}

/** Selects events that the read models of their category held already at the start. */
function isAheadOf({ checkpoints }: ProjectionStart): (event: StoredEvent) => boolean {
  return ({ stream, position }) => {
    const checkpoint = checkpoints.get(parseStreamName(stream).category) ?? 'start';
    return checkpoint !== 'start' && position !== null && comparePositions(position, checkpoint) <= 0;
  };
}

/** Follows the partitions that are assigned to this projector. */
export class PartitionSource {
  readonly #parts: SourceParts;
  readonly #onLost: ((reason: string) => void) | undefined;
  /** The handover whose partitions could not be followed any further. */
  #lost: string | null = null;

  /** @param onLost receives why the partitions could not be followed any further */
  constructor(parts: SourceParts, onLost: ((reason: string) => void) | undefined) {
    this.#parts = parts;
    this.#onLost = onLost;
  }

  canFollow(saved: SavedPartitions | null): saved is SavedPartitions {
    return this.#parts.partitioned !== undefined && saved !== null && saved.handover !== this.#lost;
  }

  async follow(start: ProjectionStart, { handover }: SavedPartitions, signal: AbortSignal): Promise<void> {
    const { follower, maxBatch, partitioned, progress, restart, streamPrefixes } = this.#parts;
    if (partitioned === undefined) return;
    const { feed, partitions } = partitioned;
    progress.report({ phase: 'catching-up', position: start.from === 'start' ? null : start.from, source: [] });
    const checkpoints = new PartitionCheckpointWriter(partitions, start, handover, ({ position, held }) =>
      progress.report({ source: held, ...(position !== null && { position }) }),
    );
    const from = async () => {
      const now = await partitions.read(start);
      if (now?.handover === handover) return now.checkpoints;
      restart();
      return [];
    };
    const items = feed.subscribe({ from, streamPrefixes, signal, ...(maxBatch !== undefined && { maxBatch }) });
    const lost = await follower.follow({ items, checkpoints }, signal);
    if (lost === null) return;
    this.#lost = handover;
    this.#onLost?.(lost);
  }
}
