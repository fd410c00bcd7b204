/**
 * A lock that the operating system releases when its holder dies, also by `kill -9`, so it is never stale. Node has no
 * API for it, but its SQLite takes such a lock for an exclusive transaction. The database stays empty.
 */
import { DatabaseSync } from 'node:sqlite';

export interface FolderLock {
  release(): void;
}

const SQLITE_BUSY = 5;

/**
 * @param waitMs how long to wait for the lock; blocks the thread. Default 0
 * @param file created if absent; never removed, because a removed file could be locked twice
 * @returns undefined if another process, or this one, holds the lock
 */
export function tryLock(file: string, waitMs = 0): FolderLock | undefined {
  const database = new DatabaseSync(file, { timeout: waitMs });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
  let held = true;
  return {
    release() {
      if (held) database.close();
      held = false;
    },
  };
}
