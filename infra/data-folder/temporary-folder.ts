import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A temporary folder that is removed when its process ends, however that happens. */
export interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** Child processes may write for up to ten seconds after their parent has died. */
const REMOVE = 'read -r _; n=0; while [ -e "$1" ] && [ $n -lt 100 ]; do rm -rf "$1"; sleep 0.1; n=$((n+1)); done';

/**
 * Creates a temporary folder. It is removed by `remove`, or by a watcher process after this process has died: the
 * watcher's stdin is a pipe from this process, which the kernel then closes.
 *
 * @param name prefix of the folder's name, such as `parley-test-`
 */
export async function makeTemporaryFolder(name: string): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), name));
  const watcher = spawn('/bin/sh', ['-c', REMOVE, 'parley-folder-watcher', path], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    // A separate process group, so that Ctrl-C in a terminal does not end the watcher.
    detached: true,
  });
  // Without a shell there is no watcher; the system removes temporary folders eventually.
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
