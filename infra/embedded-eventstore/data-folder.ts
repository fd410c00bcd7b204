// The folder of one event store, for one process at a time.
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf } from '#libs/kernel/faults.ts';
import { makeFolder, tryLock, type FolderLock } from '#libs/platform/files/index.ts';

const LOCK_FILE = 'lock.sqlite';
export const DATA_FILE = 'events.mdb';

/** A reason not to start that the operator can fix; the message is one line. */
export class CannotStartError extends Error {
  override name = 'CannotStartError';
}

/** The error for a log that cannot be read. @param problem the end of a sentence about its file */
export function damagedLog(dataDir: string, problem: string): CannotStartError {
  return new CannotStartError(
    `the log ${join(dataDir, DATA_FILE)} is damaged: ${problem}. Put the events.mdb of a backup in its place ` +
      '(`npx parley backup` makes backups). After a backup that lacks the newest events, ' +
      '`npx parley rebuild --accept-lost-events` is the second step; see "Backup and restore" in docs/operations.md',
  );
}

/**
 * Creates the folder if it is missing, and locks it.
 * @returns a function that releases the lock
 * @throws CannotStartError when it is in use, cannot be written, or contains something else
 */
export function lockDataFolder(path: string): () => void {
  prepare(path);
  const lock = acquire(path);
  return () => lock.release();
}

function prepare(path: string): void {
  try {
    makeFolder(resolve(path));
    const names = readdirSync(path);
    if (names.length === 0 || names.includes(DATA_FILE) || names.includes(LOCK_FILE)) return;
  } catch (error) {
    throw new CannotStartError(`the data folder ${path} cannot be used: ${messageOf(error)}`);
  }
  throw new CannotStartError(`the folder ${path} contains something else than an event store`);
}

function acquire(path: string): FolderLock {
  let lock: FolderLock | undefined;
  try {
    lock = tryLock(join(path, LOCK_FILE));
  } catch (error) {
    throw new CannotStartError(`the data folder ${path} cannot be locked: ${messageOf(error)}`);
  }
  if (lock === undefined) throw new CannotStartError(`the data folder ${path} is in use by another process`);
  return lock;
}
