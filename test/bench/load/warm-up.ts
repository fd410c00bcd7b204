import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

import { cpuSecondsOf, cpuSecondsOfThread } from '../child-process.ts';

const WINDOW_MS = 500;
const MOST_SECONDS = 12;
/** Share of the processor time of a process. */
const SETTLED = 0.05;

/**
 * Resolves when servers are warm: after at least `leastSeconds` of load, once V8's threads, which compile, take less than a
 * twentieth of the processor time of their processes; at the latest after {@link MOST_SECONDS}, because a process without
 * `--single-threaded-gc` also collects garbage on these threads. The same for all sides of a row.
 */
export async function warmUp(pids: readonly number[], leastSeconds: number): Promise<void> {
  const latest = performance.now() + MOST_SECONDS * 1000;
  await delay(leastSeconds * 1000);
  for (let before = await usedBy(pids); performance.now() < latest;) {
    await delay(WINDOW_MS);
    const now = await usedBy(pids);
    if (isSettled(before, now)) return;
    before = now;
  }
}

/** As {@link warmUp}, for work in rounds, which begin and end with code of their own: repeats whole rounds. */
export async function warmUpInRounds(pids: readonly number[], round: () => Promise<unknown>): Promise<void> {
  const latest = performance.now() + MOST_SECONDS * 1000;
  for (let before = await usedBy(pids); performance.now() < latest;) {
    await round();
    const now = await usedBy(pids);
    if (isSettled(before, now)) return;
    before = now;
  }
}

/** Seconds of processor time. */
interface Used {
  readonly ofThreads: number;
  readonly all: number;
}

/** Also where the system does not report it: then both are NaN. */
function isSettled(before: Used, now: Used): boolean {
  return !(now.ofThreads - before.ofThreads > SETTLED * (now.all - before.all));
}

async function usedBy(pids: readonly number[]): Promise<Used> {
  const threads = await Promise.all(pids.map(secondsOfV8Threads));
  return { ofThreads: threads.reduce((sum, one) => sum + one, 0), all: await cpuSecondsOf(...pids) };
}

async function secondsOfV8Threads(pid: number): Promise<number> {
  const ids = await readdir(`/proc/${pid}/task`).catch(() => []);
  const seconds = await Promise.all(
    ids.map(async (id) => {
      const folder = `/proc/${pid}/task/${id}`;
      const name = await readFile(`${folder}/comm`, 'utf8').catch(() => '');
      return name.trim() === 'V8Worker' ? cpuSecondsOfThread(`${folder}/stat`) : 0;
    }),
  );
  return seconds.reduce((sum, one) => sum + one, 0);
}
