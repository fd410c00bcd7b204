import type { LifecycleLog } from './log.ts';

/**
 * Stops parts in the reverse order of their start, each within a time limit: a part that hangs or fails
 * to stop is reported and does not keep the ones that it stands on from being closed.
 */
export interface StopSequence {
  add(name: string, stop: () => Promise<void> | void, limitMs?: number): void;
  /** Later calls wait for the first. Resolves with the names of the parts that did not stop properly. */
  stop(): Promise<readonly string[]>;
}

export function createStopSequence(log: LifecycleLog, defaultLimitMs: number): StopSequence {
  const parts: { name: string; stop: () => Promise<void> | void; limitMs: number }[] = [];
  let stopping: Promise<readonly string[]> | undefined;

  async function stopAll(): Promise<readonly string[]> {
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
    stop: () => (stopping ??= stopAll()),
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
