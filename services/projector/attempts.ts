import { CorruptEventError } from '#libs/kernel/faults.ts';
import { retry } from '#libs/platform/lifecycle/index.ts';
import type { ProgressReport, ProjectionProgress } from './progress.ts';

/** Waits for stores that are away, with the same work in hand, and says so meanwhile. */
export class Attempts {
  readonly #progress: ProgressReport;
  readonly #onProblem: (error: unknown, progress: ProjectionProgress) => void;

  constructor(progress: ProgressReport, onProblem: (error: unknown, progress: ProjectionProgress) => void) {
    this.#progress = progress;
    this.#onProblem = onProblem;
  }

  /** Repeats `work` until it does not throw. @returns undefined when stopped, or halted at a corrupt event */
  async untilDone<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
    if (signal.aborted) return undefined;
    try {
      const result = await retry(work, { maxMs: 2_000, signal, onFailure: (error) => this.#failed(error) });
      if (this.#progress.now.problem !== null) this.#progress.report({ problem: null });
      return result;
    } catch {
      return undefined;
    }
  }

  /** Ends the retries at a corrupt event by throwing it. */
  #failed(error: unknown): void {
    const halted = error instanceof CorruptEventError;
    const problem = error instanceof Error ? error.message : String(error);
    this.#progress.report({ problem, ...(halted && { phase: 'halted' as const }) });
    this.#onProblem(error, this.#progress.now);
    if (halted) throw error;
  }
}
