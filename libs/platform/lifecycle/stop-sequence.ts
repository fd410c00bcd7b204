import { pause } from './backoff.ts';
import type { LifecycleLog } from './log.ts';

/**
 * Stops parts in the reverse order of their start, each within a time limit: a part that hangs or fails
 * to stop is reported and does not keep the ones that it stands on from being closed.
 */
export interface StopSequence {
  add(name: string, stop: () => Promise<void> | void, limitMs?: number): void;
  /** Aborts as soon as the stop begins: from then on nothing new is to be sent here. */
  readonly stopping: AbortSignal;
  /**
   * Later calls wait for the first. Resolves with the names of the parts that did not stop properly.
   *
   * @param afterMs how long all of them go on first, so that load balancers see in time what `stopping` says
   */
  stop(afterMs?: number): Promise<readonly string[]>;
}

export function createStopSequence(log: LifecycleLog, defaultLimitMs: number): StopSequence {
  const parts: { name: string; stop: () => Promise<void> | void; limitMs: number }[] = [];
  const begun = new AbortController();
  let stopped: Promise<readonly string[]> | undefined;

  async function stopAll(afterMs: number): Promise<readonly string[]> {
    begun.abort();
    if (afterMs > 0) await pause(afterMs, new AbortController().signal);
    const failed: string[] = [];
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      try {
        await within(part.limitMs, part.stop);
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

async function within(limitMs: number, work: () => Promise<void> | void): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still busy after ${limitMs} ms`)), limitMs);
  });
  try {
    await Promise.race([work(), limit]);
  } finally {
    clearTimeout(timer);
  }
}
