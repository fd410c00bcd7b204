import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { ProjectionStart } from '#libs/platform/readmodel/index.ts';

type From = ProjectionStart['from'];

interface RecentCheckpointsOptions {
  /** How far back they reach. */
  readonly spanMs: number;
  /** Whether all nodes are available now. Time in which some are not does not count. */
  readonly isWhole: () => boolean;
  readonly nowMs?: () => number;
}

/** Checkpoints that are kept of one span. */
const NOTES = 12;

/**
 * How far the read models had come a while ago. When a replica replaces one master of a Redis Cluster, its newest writes
 * may be lost, while the saved checkpoint, which may be on another master, includes them.
 *
 * Kept in memory, from the start of the process.
 */
export class RecentCheckpoints {
  readonly #options: RecentCheckpointsOptions;
  readonly #nowMs: () => number;
  #build: string | null = null;
  /** The oldest first. */
  #notes: readonly From[] = [];
  #notedMs = 0;

  constructor(options: RecentCheckpointsOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
  }

  /** Forgets the checkpoints of other builds. */
  begin({ build, from }: Pick<ProjectionStart, 'build' | 'from'>): void {
    if (build === this.#build) return;
    this.#build = build;
    this.#notes = [from];
    this.#notedMs = this.#nowMs();
  }

  /** Everything up to `position` is applied. */
  note(position: GlobalPosition): void {
    const nowMs = this.#nowMs();
    if (!this.#options.isWhole() || nowMs - this.#notedMs < this.#options.spanMs / NOTES) return;
    this.#notedMs = nowMs;
    this.#notes = [...this.#notes, position].slice(-NOTES - 1);
  }

  /** Writes after it may be lost, though they were applied; null before the start. */
  get oldest(): From | null {
    return this.#notes[0] ?? null;
  }
}
