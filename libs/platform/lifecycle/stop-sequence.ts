import type { LifecycleLog } from './log.ts';
import { pause, within } from './retry.ts';

/**
 * Stops parts in the reverse order of their start, each within a time limit. A part that hangs or fails to stop
 * is reported, and the parts that it depends on are still stopped.
 */
export interface StopSequence {
  add(name: string, stop: () => Promise<void> | void, limitMs?: number): void;
  /** Aborts when the stop begins: from then on this process should get no new work. */
  readonly stopping: AbortSignal;
  /**
   * Later calls wait for the first. Resolves with the names of the parts that did not stop properly.
   *
   * @param afterMs how long all parts keep working first, so that load balancers notice `stopping` in time
   */
  stop(afterMs?: number): Promise<readonly string[]>;
}

export function createStopSequence(log: LifecycleLog, defaultLimitMs: number): StopSequence {
  const parts: { name: string; stop: () => Promise<void> | void; limitMs: number }[] = [];
  const begun = new AbortController();
  let stopped: Promise<readonly string[]> | undefined;

  async function stopAll(afterMs: number): Promise<readonly string[]> {
    begun.abort();
    if (afterMs > 0) await pause(afterMs);
    const failed: string[] = [];
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      try {
        const { limitMs, stop } = part;
        await within(limitMs, Promise.try(stop), () => new Error(`still busy after ${limitMs} ms`));
      } catch (error) {
        failed.push(part.name);
        log.error({ err: error, part: part.name }, 'a part did not stop properly');
      }
    }
    return failed;
  }

  return {
    add(name, stop, limitMs = defaultLimitMs) {
      parts.push({ name, stop, limitMs });
    },
    stopping: begun.signal,
    stop: (afterMs = 0) => (stopped ??= stopAll(afterMs)),
  };
}
