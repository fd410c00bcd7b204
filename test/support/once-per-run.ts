/** What takes seconds to make, several test files need, and none changes: the first file makes it, in any worker. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { eventually } from './eventually.ts';

/** Names the folder of the run for its worker processes. */
const VARIABLE = 'PARLEY_TEST_RUN_FOLDER';

/** @returns a function that removes the folder */
export async function openRunFolder(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-run-'));
  process.env[VARIABLE] = folder;
  return () => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

const placeOf = (name: string): string => join(process.env[VARIABLE] ?? '', name);

/** The folder that `make` has filled, if it was called. */
export const runFolder = (name: string): string => join(placeOf(name), 'folder');

/**
 * @param make fills an empty folder; one call in each run
 * @returns the folder, for reading
 */
export async function oncePerRun(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const place = placeOf(name);
  const folder = runFolder(name);
  const [made, failed] = [join(place, 'made'), join(place, 'failed')];
  const isFirst = await mkdir(place).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
  if (isFirst) {
    try {
      await mkdir(folder);
      await make(folder);
      await writeFile(made, '');
    } catch (error) {
      await writeFile(failed, String(error));
      throw error;
    }
  } else {
    await eventually(() => existsSync(made) || existsSync(failed), { timeoutMs: 180_000 });
    if (existsSync(failed)) throw new Error(`another test file could not make ${name}`);
  }
  return folder;
}
