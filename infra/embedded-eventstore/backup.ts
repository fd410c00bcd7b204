// Copies the log, as one transaction sees it, while another process may write it.
import { chmod, mkdir, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DATA_FILE, damagedLog } from './data-folder.ts';
import { damageOf } from './log/damage.ts';

/** @throws Error of the file system when the store has no events file; CannotStartError when that is damaged */
export async function requireReadableLog(source: string): Promise<void> {
  const events = join(source, DATA_FILE);
  // Opening would create the file.
  await stat(events);
  const damage = damageOf(events);
  if (damage !== undefined) throw damagedLog(source, damage);
}

/**
 * Copies the events of a store, running or not. Reads and writes continue meanwhile. The copy has all writes
 * acknowledged before the call, and a store can start on it.
 *
 * @param source folder of the store
 * @param target folder without events, created if it is missing; an interrupted copy leaves it without events
 * @returns size of the copy in bytes
 * @throws Error of the file system: no events at the source, no space at the target; CannotStartError for a damaged log
 */
export async function backUpEventStore(source: string, target: string): Promise<number> {
  await requireReadableLog(source);
  await mkdir(target, { recursive: true, mode: 0o700 });
  const copy = join(target, `${DATA_FILE}.part`);
  // Only here: the process of a Parley imports this file, and leaves the log to a thread.
  const { open: openLmdb } = await import('lmdb');
  const lmdb = openLmdb({ path: join(source, DATA_FILE), readOnly: true });
  try {
    await lmdb.backup(copy, false);
    // LMDB makes a copy readable for everyone.
    await chmod(copy, 0o600);
  } finally {
    await lmdb.close();
  }
  const bytes = await flush(copy);
  await rename(copy, join(target, DATA_FILE));
  await flush(target);
  return bytes;
}

async function flush(path: string): Promise<number> {
  const handle = await open(path);
  try {
    await handle.sync();
    return (await handle.stat()).size;
  } finally {
    await handle.close();
  }
}
