/**
 * Redis does not lock its folder: two servers that append to the same files destroy them. This finds a server that
 * outlived its Parley and its watcher: a Redis process whose working folder is in the data folder.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const GRACE_MS = 5_000;

/**
 * Ends every Redis whose working folder is `dataDir`. The caller must hold the lock of the data folder.
 *
 * @returns the ids of the ended processes
 */
export async function endOrphans(dataDir: string): Promise<readonly number[]> {
  const folder = await realpath(dataDir);
  const orphans = await redisProcessesIn(folder);
  for (const pid of orphans) {
    signal(pid, 'SIGCONT');
    signal(pid, 'SIGTERM');
  }
  const deadline = Date.now() + GRACE_MS;
  for (let left = orphans; left.length > 0; left = await redisProcessesIn(folder)) {
    if (Date.now() > deadline) for (const pid of left) signal(pid, 'SIGKILL');
    await delay(20);
  }
  return orphans;
}

/** Process ids of the Redis servers, and of their children that rewrite files, with the working folder `folder`. */
export async function redisProcessesIn(folder: string): Promise<readonly number[]> {
  return process.platform === 'linux' ? fromProc(folder) : fromLsof(folder);
}

async function fromProc(folder: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const found = await Promise.all(
    pids.map(async (pid) => {
      // The process has ended, or belongs to another user.
      const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
      if (!/redis|valkey/.test(name)) return [];
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
      return cwd === folder ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

/** For systems without /proc (macOS). Without `lsof` nothing is found, and only the watcher protects the folder. */
async function fromLsof(folder: string): Promise<readonly number[]> {
  const run = promisify(execFile);
  const { stdout } = await run('lsof', ['-a', '-c', 'redis', '-d', 'cwd', '-Fpn']).catch(() => ({ stdout: '' }));
  const pids: number[] = [];
  let pid = 0;
  for (const line of stdout.split('\n')) {
    if (line.startsWith('p')) pid = Number(line.slice(1));
    if (line === `n${folder}`) pids.push(pid);
  }
  return pids;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has just ended.
  }
}
