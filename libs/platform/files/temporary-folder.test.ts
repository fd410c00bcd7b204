import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { openTemporaryFolder } from './temporary-folder.ts';

let parent: string;
beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'parley-test-temporary-'));
});
afterAll(() => rm(parent, { recursive: true, force: true }));

/** Opens a folder with a file in it, and kills its process. */
function killedOwner(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const code = `
    const { openTemporaryFolder } = await import(${JSON.stringify(join(import.meta.dirname, 'temporary-folder.ts'))});
    const { path } = openTemporaryFolder('work-', ${JSON.stringify(parent)});
    (await import('node:fs')).writeFileSync(path + '/file', 'a');
    (await import('node:fs')).writeSync(1, path);
    process.kill(process.pid, 'SIGKILL');`;
  execFile(process.execPath, ['--input-type=module', '--eval', code], (_error, stdout) => resolve(stdout));
  return promise;
}

it('a temporary folder is removed by its process, or by the next one if that was killed, and not before', async () => {
  const [first, second] = [openTemporaryFolder('work-', parent), openTemporaryFolder('work-', parent)];
  await writeFile(join(first.path, 'file'), 'a');
  const others = ['work-by-hand', 'work-018f2f5c-5b1c-7c54-9f7b-3d1f0c2b8a11'].map((name) => join(parent, name));
  for (const path of others) await mkdir(path);
  const left = await killedOwner();
  expect(existsSync(join(left, 'file'))).toBe(true);

  const third = openTemporaryFolder('work-', parent);
  await third.swept;
  // Those in use, and those that are none: they have no lock.
  expect((await readdir(parent)).map((name) => join(parent, name)).toSorted()).toEqual(
    [first.path, second.path, third.path, ...others].toSorted(),
  );
  expect(existsSync(join(first.path, 'file'))).toBe(true);

  for (const folder of [first, second, third]) await folder.remove();
  expect((await readdir(parent)).map((name) => join(parent, name)).toSorted()).toEqual(others.toSorted());
});

it('folders are removed by several at once, each of which sweeps those of the others', async () => {
  const one = async (): Promise<void> => {
    for (let round = 0; round < 50; round += 1) {
      const folder = openTemporaryFolder('swept-', parent);
      await folder.swept;
      await writeFile(join(folder.path, 'file'), 'a');
      await folder.remove();
    }
  };
  await Promise.all(Array.from({ length: 8 }, one));
  expect((await readdir(parent)).filter((name) => name.startsWith('swept-'))).toEqual([]);
});
