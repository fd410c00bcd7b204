import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that goes with its process, however that ends. */
export interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** Whoever works in there may write for a moment longer than its parent lives: up to ten seconds. */
const REMOVE = 'read -r _; n=0; while [ -e "$1" ] && [ $n -lt 100 ]; do rm -rf "$1"; sleep 0.1; n=$((n+1)); done';

/**
 * Makes an empty folder where the system keeps such things. It is removed by `remove`, or by a small watcher
 * after this process: the watcher's stdin is a pipe from us, which the kernel closes when we are gone.
 *
 * @param name the beginning of its name, `parley-test-`
 */
export async function makeTemporaryFolder(name: string): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), name));
  const watcher = spawn('/bin/sh', ['-c', REMOVE, 'parley-folder-watcher', path], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    // A group of its own: Ctrl-C in a terminal must not reach it.
    detached: true,
  });
  // Without a shell, nobody looks after it: the system cleans up in its own time.
  watcher.on('error', () => undefined);
  watcher.stdin.on('error', () => undefined);
  watcher.unref();
  return {
    path,
    async remove() {
      await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
      watcher.kill('SIGKILL');
    },
  };
}
