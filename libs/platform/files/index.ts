/** Files and folders. */
import { mkdirSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '#libs/kernel/faults.ts';

export { tryLock, type FolderLock } from './folder-lock.ts';
export { openTemporaryFolder } from './temporary-folder.ts';

/**
 * Creates a folder and its parents, for the owner only; an existing folder stays unchanged. `mkdir` with `recursive` never
 * returns where the system answers ENOENT although the parent exists, as below `/proc`.
 *
 * @throws the errors of the file system
 */
export function makeFolder(path: string): void {
  try {
    create(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    makeFolder(dirname(path));
    create(path);
  }
}

/**
 * Replaces a file atomically, for the owner only. The content is on disk before the file has its name; `isDurable` also
 * waits until the name is on disk.
 */
export async function replaceFile(path: string, content: string, { isDurable = false } = {}): Promise<void> {
  const next = `${path}.next`;
  // An existing file would keep its mode.
  await rm(next, { force: true });
  const file = await open(next, 'wx', 0o600);
  await file
    .writeFile(content)
    .then(() => file.sync())
    .finally(() => file.close());
  await rename(next, path);
  if (!isDurable) return;
  const folder = await open(dirname(path));
  await folder.sync().finally(() => folder.close());
}

function create(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
}
