import { CorruptEventError, messageOf } from '#libs/kernel/faults.ts';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { retry } from '#libs/platform/lifecycle/index.ts';
import type { HeldPartition } from './checkpoint-writers.ts';

/** How far the read models have come. */
export interface ProjectionProgress {
  /** `halted`: an event cannot be applied, and no later one is until Parley is repaired. */
  readonly phase: 'catching-up' | 'live' | 'halted';
  /** With partitions, the position of all projectors together. */
  readonly position: GlobalPosition | null;
  /** The log itself, or the partitions that this projector holds; other projectors hold the rest. */
  readonly source: 'log' | readonly HeldPartition[];
  /** Events of this run, whether they were new to the read models or not. */
  readonly eventsSeen: number;
  /** An unavailable store, or the event at which the projector halted. */
  readonly problem: string | null;
}

export class ProgressReport {
  readonly #onChange: ((progress: ProjectionProgress) => void) | undefined;
  readonly #onProblem: (error: unknown, progress: ProjectionProgress) => void;
  #now: ProjectionProgress = {
    phase: 'catching-up',
    position: null,
    source: 'log',
    eventsSeen: 0,
    problem: null,
  };

  constructor(
    onChange: ((progress: ProjectionProgress) => void) | undefined,
    onProblem: (error: unknown, progress: ProjectionProgress) => void,
  ) {
    this.#onChange = onChange;
    this.#onProblem = onProblem;
  }

  get now(): ProjectionProgress {
    return this.#now;
  }

  report(change: Partial<ProjectionProgress>): void {
    this.#now = { ...this.#now, ...change };
    this.#onChange?.(this.#now);
  }

  /**
   * Retries `work` while stores are unavailable, and reports the problem meanwhile.
   *
   * @returns undefined when stopped, or halted at a corrupt event
   */
  async untilDone<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
    if (signal.aborted) return undefined;
    try {
      const result = await retry(work, { maxMs: 2_000, signal, onFailure: (error) => this.#failed(error) });
      if (this.#now.problem !== null) this.report({ problem: null });
      return result;
    } catch {
      return undefined;
    }
  }

  /** Ends the retries at a corrupt event by throwing it. */
  #failed(error: unknown): void {
    const halted = error instanceof CorruptEventError;
    const problem = messageOf(error);
    this.report({ problem, ...(halted && { phase: 'halted' as const }) });
    this.#onProblem(error, this.#now);
    if (halted) throw error;
  }
}
