import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { ProjectionStart } from '#libs/platform/readmodel/index.ts';

type From = ProjectionStart['from'];

export interface TrailOptions {
  /** How far back it reaches. */
  readonly spanMs: number;
  /** Whether all that was applied can be reached at the moment. Time in which it cannot does not count. */
  readonly isWhole: () => boolean;
  readonly nowMs?: () => number;
}

/** Notes of one span. */
const NOTES = 12;

/**
 * How far the read models had come a while ago. Stores that are replaced by others one by one (the masters of a Redis
 * Cluster) may lose their newest writes each, while the checkpoint, which lives on one of them, counts these.
 *
 * It is kept in memory: of what was before it began it knows nothing.
 */
export class Trail {
  readonly #options: TrailOptions;
  readonly #nowMs: () => number;
  #build: string | null = null;
  /** The oldest first. */
  #notes: readonly From[] = [];
  #notedMs = 0;

  constructor(options: TrailOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
  }

  /** What was applied to another build is not in this one. */
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

  /** What lies after it may be lost, though it was applied; null before it has begun. */
  get oldest(): From | null {
    return this.#notes[0] ?? null;
  }
}
