import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { folderBlobStore } from '#libs/platform/blobs/index.ts';
import { ageFiles } from '#test/support/aged-files.ts';

import { chunksOf, describeBlobStore } from './contract.ts';

describeBlobStore('of a folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-blobs-'));
  const below = join(folder, 'new', 'blobs');
  return {
    open: () => folderBlobStore(below),
    count: async () => {
      const entries = await readdir(below, { recursive: true, withFileTypes: true }).catch(() => []);
      return entries.filter((entry) => entry.isFile()).length;
    },
    age: (hashes) => ageFiles(below, hashes),
    stop: () => rm(folder, { recursive: true, force: true }),
  };
});

describe('a folder of blobs', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'parley-test-blobs-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('is unavailable where a file is in its place', async () => {
    const path = join(folder, 'file');
    await writeFile(path, '');
    const put = folderBlobStore(path).put(chunksOf(Buffer.from('a')), { maxBytes: 1 });
    await expect(put).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(folderBlobStore(path).ping()).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('loses what killed writers have left behind, and nothing of others', async () => {
    const incoming = join(folder, 'blobs', 'incoming');
    await mkdir(incoming, { recursive: true });
    await writeFile(join(incoming, 'old'), 'a');
    await writeFile(join(incoming, 'new'), 'a');
    const longAgo = new Date('2020-01-01');
    await utimes(join(incoming, 'old'), longAgo, longAgo);
    await folderBlobStore(join(folder, 'blobs')).put(chunksOf(Buffer.from('a')), { maxBytes: 1 });
    expect(await readdir(incoming)).toEqual(['new']);
  });
});
