import { CorruptEventError } from '#libs/kernel/faults.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
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
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const result = await work();
        if (this.#progress.now.problem !== null) this.#progress.report({ problem: null });
        return result;
      } catch (error) {
        const halted = error instanceof CorruptEventError;
        const problem = error instanceof Error ? error.message : String(error);
        this.#progress.report({ problem, ...(halted && { phase: 'halted' as const }) });
        this.#onProblem(error, this.#progress.now);
        if (halted) return undefined;
        await pause(backoffMs(failures, { maxMs: 2_000 }), signal);
      }
    }
    return undefined;
  }
}
