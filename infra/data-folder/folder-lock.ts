/**
 * A lock that the operating system lets go when its holder dies, by `kill -9` too: no stale lock files,
 * no process ids to compare. Node has no such call, but its SQLite takes exactly this lock on a database
 * that a transaction holds exclusively. The database stays empty.
 */
import { DatabaseSync } from 'node:sqlite';

export interface FolderLock {
  release(): void;
}

const SQLITE_BUSY = 5;

/**
 * @param waitMs how long to wait for a holder to let go; blocks the thread. Default: not at all
 * @param file created if absent; never removed, for a removed file could be locked twice
 * @returns undefined when another process, or this one, holds the lock
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
