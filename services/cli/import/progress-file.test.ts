import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { ProgressFile } from './progress-file.ts';
import { NOTHING_YET } from './run-import.ts';

const progress = { checkpoint: 1, counts: NOTHING_YET };

let parent: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'parley-test-progress-'));
});
afterEach(() => rm(parent, { recursive: true, force: true }));

it('creates the data folder and those above it, for their owner only', async () => {
  const file = new ProgressFile(join(parent, 'a', 'b'), ['identity'], 'fingerprint');
  await file.save(progress);
  expect(await file.read()).toEqual(progress);
  for (const folder of ['a', 'a/b', 'a/b/imports']) expect((await stat(join(parent, folder))).mode & 0o777).toBe(0o700);
});

it('reports that the data folder cannot be created', async () => {
  await writeFile(join(parent, 'file'), '');
  const file = new ProgressFile(join(parent, 'file', 'data'), ['identity'], 'fingerprint');
  await expect(file.save(progress)).rejects.toThrow(/ENOTDIR.*mkdir/);
});
