import { setTimeout as delay } from 'node:timers/promises';
import { cpus } from 'node:os';

const LOOK_MS = 500;
const QUIET = 0.15;

/**
 * Waits until the other processes of the machine are idle, at most `seconds`: their load would distort the
 * measurement.
 * @returns the fraction of all processors that was in use at the last check, 0 to 1
 */
export async function waitForQuiet(seconds: number): Promise<number> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const before = times();
    await delay(LOOK_MS);
    const after = times();
    const busy = 1 - (after.idle - before.idle) / (after.all - before.all);
    if (busy <= QUIET || performance.now() >= deadline) return busy;
  }
}

export function isQuiet(busy: number): boolean {
  return busy <= QUIET;
}

function times(): { idle: number; all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, all };
}
