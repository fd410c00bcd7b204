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

interface PartitionsProgress {
  /** Of all projectors; null while nothing was saved. */
  readonly position: GlobalPosition | null;
  readonly held: readonly HeldPartition[];
}

/** For partitions: one checkpoint for each. */
export function partitionCheckpointWriter(
  partitions: PartitionCheckpoints,
  start: ProjectionStart,
  handover: string,
  onProgress: (progress: PartitionsProgress) => void,
): Required<CheckpointWriter> {
  /** By partition. `saved` is in Redis for certain: a lower checkpoint there means that Redis lost writes. */
  let held = new Map<string, { reached: ReachedCheckpoint; saved: string }>();
  const report = (position: GlobalPosition | null): void => {
    const reached = [...held.values()].map(({ reached: { partition, position, behind = null } }) => ({
      partition,
      position,
      behind,
    }));
    onProgress({ position, held: reached });
  };
  return {
    begin(checkpoints) {
      held = new Map(checkpoints.map((reached) => [reached.partition, { reached, saved: reached.checkpoint }]));
      report(null);
    },
    note(checkpoints) {
      for (const reached of checkpoints) {
        const partition = held.get(reached.partition);
        if (partition !== undefined) partition.reached = reached;
      }
    },
    /** Saves unchanged checkpoints as well, to notice a Redis that lost them. */
    async save() {
      const saving = [...held.values()].map((partition) => ({ partition, ...partition }));
      const position = await partitions.save(start, handover, {
        checkpoints: saving.map(({ reached }) => reached),
        known: new Map(saving.map(({ reached, saved }) => [reached.partition, saved])),
      });
      if (position === null) return false;
      for (const { partition, reached } of saving) partition.saved = reached.checkpoint;
      report(position);
      return true;
    },
  };
}
