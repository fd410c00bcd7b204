import type { LifecycleLog } from './run-process.ts';
import { pause, within } from './retry.ts';

/**
 * Stops parts in the reverse order of their start, each within a time limit. A part that hangs or fails to stop
 * is reported, and the parts that it depends on are still stopped.
 */
export class StopSequence {
  readonly #log: LifecycleLog;
  readonly #limitMs: number;
  readonly #parts: { name: string; stop: () => Promise<void> | void; limitMs: number }[] = [];
  readonly #begun = new AbortController();
  #stopped: Promise<readonly string[]> | undefined;
  /** Aborts when the stop begins: from then on this process should get no new work. */
  readonly stopping: AbortSignal = this.#begun.signal;

  constructor(log: LifecycleLog, limitMs: number) {
    this.#log = log;
    this.#limitMs = limitMs;
  }

  add(name: string, stop: () => Promise<void> | void, limitMs = this.#limitMs): void {
    this.#parts.push({ name, stop, limitMs });
  }

  /**
   * Later calls wait for the first. Resolves with the names of the parts that did not stop properly.
   *
   * @param afterMs how long all parts keep working first, so that load balancers notice `stopping` in time
   */
  stop(afterMs = 0): Promise<readonly string[]> {
    return (this.#stopped ??= this.#stopAll(afterMs));
  }

  async #stopAll(afterMs: number): Promise<readonly string[]> {
    this.#begun.abort();
    if (afterMs > 0) await pause(afterMs);
    const failed: string[] = [];
    for (let part = this.#parts.pop(); part !== undefined; part = this.#parts.pop()) {
      const { name, stop, limitMs } = part;
      try {
        await within(limitMs, (async () => stop())(), () => new Error(`still busy after ${limitMs} ms`));
      } catch (error) {
        failed.push(name);
        this.#log.error({ err: error, part: name }, 'a part did not stop properly');
      }
    }
    return failed;
  }
}
