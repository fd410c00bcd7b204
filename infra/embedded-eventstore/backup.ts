// A copy of the log as it is at one moment, taken from beside the process that writes it.
import { chmod, mkdir, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { open as openLmdb } from 'lmdb';
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
 * Copies the events of a store, whether it runs or not. Readers and writers go on meanwhile; the copy holds all
 * that was acknowledged before the call, and is one that a store starts on.
 *
 * @param source folder of the store
 * @param target folder that is made, or has no events yet; cut short, it has none either
 * @returns bytes of the copy
 * @throws Error of the file system: no events at the source, no place at the target; CannotStartError for a damaged log
 */
export async function backUpEventStore(source: string, target: string): Promise<number> {
  await requireReadableLog(source);
  await mkdir(target, { recursive: true, mode: 0o700 });
  const copy = join(target, `${DATA_FILE}.part`);
  // No tables are opened: only the pages are copied, as one transaction sees them.
  const lmdb = openLmdb({ path: join(source, DATA_FILE), readOnly: true });
  try {
    await lmdb.backup(copy, false);
    // LMDB lets everybody read a copy, unlike the original.
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
