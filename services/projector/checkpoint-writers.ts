import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { PartitionCheckpoint } from '#libs/platform/eventstore/index.ts';
import type { PartitionCheckpoints, ProjectionStart } from '#libs/platform/readmodel/index.ts';

type ReachedCheckpoint = PartitionCheckpoint & { readonly behind?: number };

/** Saves how far a projector has brought builds of the read models, beside the builds. */
export interface CheckpointWriter {
  /**
   * @param complete the whole log is in the read models
   * @returns false if the builds or the stored checkpoints are not those that the projector began with or saved
   */
  save(complete: boolean): Promise<boolean>;
  /** Resumes these partitions, and no others, from their checkpoints. */
  begin?(checkpoints: readonly PartitionCheckpoint[]): void;
  /** Takes these checkpoints into account at the next save. */
  note?(checkpoints: readonly ReachedCheckpoint[]): void;
}

/** A partition that this projector holds. */
export interface HeldPartition {
  readonly partition: string;
  /** All events of the partition up to it are applied. */
  readonly position: GlobalPosition;
  /** Messages that followed when it was reached; null before the first. */
  readonly behind: number | null;
}

export interface PartitionsProgress {
  /** Of all projectors; null while nothing was saved. */
  readonly position: GlobalPosition | null;
  readonly held: readonly HeldPartition[];
}

/** For partitions: one checkpoint for each. */
export class PartitionCheckpointWriter implements CheckpointWriter {
  readonly #partitions: PartitionCheckpoints;
  readonly #start: ProjectionStart;
  readonly #handover: string;
  readonly #onProgress: (progress: PartitionsProgress) => void;
  /** By partition. `saved` is in Redis for certain: a lower checkpoint there means that Redis lost writes. */
  #held = new Map<string, { reached: ReachedCheckpoint; saved: string }>();

  constructor(
    partitions: PartitionCheckpoints,
    start: ProjectionStart,
    handover: string,
    onProgress: (progress: PartitionsProgress) => void,
  ) {
    this.#partitions = partitions;
    this.#start = start;
    this.#handover = handover;
    this.#onProgress = onProgress;
  }

  begin(checkpoints: readonly PartitionCheckpoint[]): void {
    this.#held = new Map(checkpoints.map((reached) => [reached.partition, { reached, saved: reached.checkpoint }]));
    this.#report(null);
  }

  note(checkpoints: readonly ReachedCheckpoint[]): void {
    for (const reached of checkpoints) {
      const held = this.#held.get(reached.partition);
      if (held !== undefined) held.reached = reached;
    }
  }

  /** Saves unchanged checkpoints as well, to notice a Redis that lost them. */
  async save(): Promise<boolean> {
    const saving = [...this.#held.values()].map((held) => ({ held, known: held.saved, reached: held.reached }));
    const position = await this.#partitions.save(this.#start, this.#handover, {
      checkpoints: saving.map(({ reached }) => reached),
      known: new Map(saving.map(({ reached, known }) => [reached.partition, known])),
    });
    if (position === null) return false;
    for (const { held, reached } of saving) held.saved = reached.checkpoint;
    this.#report(position);
    return true;
  }

  #report(position: GlobalPosition | null): void {
    const held = [...this.#held.values()].map(({ reached }) => ({
      partition: reached.partition,
      position: reached.position,
      behind: reached.behind ?? null,
    }));
    this.#onProgress({ position, held });
  }
}
