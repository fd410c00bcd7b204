import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { PartitionCheckpoint } from '#libs/platform/eventstore/index.ts';
import type { PartitionCheckpoints, ProjectionStart, ProjectionState } from '#libs/platform/readmodel/index.ts';

type ReachedCheckpoint = PartitionCheckpoint & { readonly behind?: number };

/** Saves how far a projector has brought builds of the read models, beside the builds. */
export interface CheckpointWriter {
  /** @param complete the whole log is in the read models */
  save(complete: boolean): Promise<boolean>;
  /** Whether the builds are still those of the start. */
  isCurrent(): Promise<boolean>;
  /** Resumes the partitions from these checkpoints. */
  begin(checkpoints: readonly PartitionCheckpoint[]): void;
  /** Takes these checkpoints into account at the next save. */
  note(checkpoints: readonly ReachedCheckpoint[]): void;
}

/** For the log itself: one position. */
export class LogCheckpointWriter implements CheckpointWriter {
  readonly #state: ProjectionState;
  readonly #start: ProjectionStart;
  readonly #position: () => GlobalPosition | null;

  constructor(state: ProjectionState, start: ProjectionStart, position: () => GlobalPosition | null) {
    this.#state = state;
    this.#start = start;
    this.#position = position;
  }

  save(complete: boolean): Promise<boolean> {
    return this.#state.save(this.#start, this.#position(), complete);
  }

  isCurrent(): Promise<boolean> {
    return this.#state.isCurrent(this.#start);
  }

  begin(): void {}

  note(): void {}
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
  readonly #held = new Map<string, HeldPartition>();
  /** Saved for certain: less in Redis means that it lost writes. */
  readonly #saved = new Map<string, PartitionCheckpoint>();
  readonly #unsaved = new Map<string, PartitionCheckpoint>();

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

  save(): Promise<boolean> {
    return this.#save([...this.#unsaved.values()]);
  }

  /** Also notices another handover, and a Redis that has less than was saved. */
  isCurrent(): Promise<boolean> {
    return this.#save([...new Map([...this.#saved, ...this.#unsaved]).values()]);
  }

  begin(checkpoints: readonly PartitionCheckpoint[]): void {
    this.#saved.clear();
    this.#unsaved.clear();
    this.#held.clear();
    for (const checkpoint of checkpoints) {
      this.#saved.set(checkpoint.partition, checkpoint);
      this.#held.set(checkpoint.partition, {
        partition: checkpoint.partition,
        position: checkpoint.position,
        behind: null,
      });
    }
    this.#onProgress({ position: null, held: [...this.#held.values()] });
  }

  note(checkpoints: readonly ReachedCheckpoint[]): void {
    for (const { behind = null, ...checkpoint } of checkpoints) {
      this.#unsaved.set(checkpoint.partition, checkpoint);
      this.#held.set(checkpoint.partition, { partition: checkpoint.partition, position: checkpoint.position, behind });
    }
  }

  async #save(checkpoints: readonly PartitionCheckpoint[]): Promise<boolean> {
    const known = new Map([...this.#saved].map(([partition, { checkpoint }]) => [partition, checkpoint]));
    const position = await this.#partitions.save(this.#start, this.#handover, { checkpoints, known });
    if (position === null) return false;
    for (const checkpoint of checkpoints) {
      if (this.#unsaved.get(checkpoint.partition) === checkpoint) this.#unsaved.delete(checkpoint.partition);
      if (this.#saved.has(checkpoint.partition)) this.#saved.set(checkpoint.partition, checkpoint);
    }
    this.#onProgress({ position, held: [...this.#held.values()] });
    return true;
  }
}
