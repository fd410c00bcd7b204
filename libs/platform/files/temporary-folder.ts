import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { tryLock } from './folder-lock.ts';

export interface TemporaryFolder {
  readonly path: string;
  /** Resolves when what killed processes have left behind is removed, as far as that is possible. */
  readonly swept: Promise<void>;
  remove(): Promise<void>;
}

const LOCK = 'lock';

/**
 * Creates a folder for temporary files of this process, for the owner only. It is locked while the process lives, so that
 * the next one to call this, with the same prefix on this machine, removes what a killed process has left behind.
 *
 * @param prefix of its name, with a dash at the end
 * @throws the errors of the file system
 */
export function openTemporaryFolder(prefix: string, parent = tmpdir()): TemporaryFolder {
  const path = join(parent, `${prefix}${randomUUID()}`);
  mkdirSync(path, { mode: 0o700 });
  // Undefined if another process sweeps it already, which it sees for a moment without a lock.
  const lock = tryLock(join(path, LOCK));
  if (lock === undefined) return openTemporaryFolder(prefix, parent);
  const swept = sweep(prefix, parent);
  return {
    path,
    swept,
    async remove() {
      await swept;
      lock.release();
      // Another process that sweeps at this moment may create the file of the lock again.
      await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    },
  };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function sweep(prefix: string, parent: string): Promise<void> {
  const names = await readdir(parent).catch((): string[] => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !UUID.test(name.slice(prefix.length))) continue;
    try {
      await removeUnlocked(join(parent, name));
    } catch {
      // The folder belongs to another user, or another process sweeps it.
    }
  }
}

async function removeUnlocked(path: string): Promise<void> {
  const file = join(path, LOCK);
  if (!existsSync(file)) return;
  const lock = tryLock(file);
  if (lock === undefined) return;
  await rm(path, { recursive: true, force: true }).finally(() => lock.release());
}
