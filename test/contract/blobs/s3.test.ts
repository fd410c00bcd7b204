import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type BlobStore, s3BlobStore, type S3Options } from '#libs/platform/blobs/index.ts';
import { ageFiles } from '#test/support/aged-files.ts';
import { eventually } from '#test/support/eventually.ts';
import { startS3Proxy } from '#test/support/s3/s3-proxy.ts';
import { type S3Server, startS3Server } from '#test/support/s3/s3-server.ts';
import { findS3Server } from '#test/support/s3/versitygw.mjs';

import { chunksOf, describeBlobStore } from './contract.ts';

const program = await findS3Server();
const MAX = { maxBytes: 1024 * 1024 };

/** A server, and clients of it that one call closes. */
async function startS3() {
  const server = await startS3Server(program ?? '');
  const temporary = await mkdtemp(join(tmpdir(), 'parley-test-blobs-'));
  const opened: BlobStore[] = [];
  return {
    server,
    temporary,
    open(options: Partial<S3Options> = {}): BlobStore {
      const blobs = s3BlobStore({ ...server.options, ...options }, join(temporary, 'files'));
      opened.push(blobs);
      return blobs;
    },
    async stop() {
      for (const blobs of opened) blobs.close();
      await server.stop();
      await rm(temporary, { recursive: true, force: true });
    },
  };
}

/** Objects of the bucket, also those of other names than blobs. */
async function objectsIn({ folder }: S3Server): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

describe.skipIf(program === null)('S3', () => {
  describeBlobStore('of S3', async () => {
    const s3 = await startS3();
    return {
      ...s3,
      count: async () => (await objectsIn(s3.server)).length,
      age: (hashes) => ageFiles(join(s3.server.folder, s3.server.options.prefix), hashes),
    };
  });

  describe('a bucket of blobs', () => {
    let s3: Awaited<ReturnType<typeof startS3>>;
    beforeAll(async () => {
      s3 = await startS3();
    }, 120_000);
    afterAll(() => s3?.stop());

    it('is unavailable while the server is away or silent, and then available again', async () => {
      const blobs = s3.open();
      const blob = await blobs.put(chunksOf(randomBytes(10)), MAX);
      const { hash } = blob;
      const unavailable = { code: 'store_unavailable' };
      await s3.server.kill9();
      await expect(blobs.size(hash)).rejects.toMatchObject(unavailable);
      await expect(blobs.read(blob)).rejects.toMatchObject(unavailable);
      await expect(blobs.withFile(blob, async () => 'used')).rejects.toMatchObject(unavailable);
      await expect(blobs.put(chunksOf(randomBytes(10)), MAX)).rejects.toMatchObject(unavailable);
      await s3.server.start();
      expect(await blobs.size(hash)).toBe(10);
      s3.server.pause();
      // It may still answer for a moment.
      const refusal = await eventually(() =>
        blobs.size(hash).then(
          () => false,
          (error: unknown) => [error],
        ),
      );
      expect(refusal).toMatchObject([unavailable]);
      s3.server.resume();
      expect(await blobs.size(hash)).toBe(10);
    });

    it('is unavailable, and not empty, for wrong credentials or a bucket that does not exist', async () => {
      const hash = 'a'.repeat(64);
      const credentials = { accessKeyId: 'parley', secretAccessKey: 'wrong' };
      for (const blobs of [s3.open({ bucket: 'missing' }), s3.open({ credentials })]) {
        const put = () => blobs.put(chunksOf(randomBytes(1)), MAX);
        for (const call of [() => blobs.size(hash), () => blobs.read({ hash, bytes: 1 }), put, () => blobs.ping()]) {
          await expect(call()).rejects.toMatchObject({ code: 'store_unavailable' });
        }
      }
    });

    it('keeps nothing in its folder after it was used, nor while it waits for a content', async () => {
      const blobs = s3.open();
      const sender = Promise.withResolvers<void>();
      const started = Promise.withResolvers<void>();
      const slow = async function* () {
        yield randomBytes(10);
        started.resolve();
        await sender.promise;
      };
      const stored = blobs.put(slow(), MAX);
      await started.promise;
      expect(await readdir(join(s3.temporary, 'files'))).toEqual([]);
      sender.resolve();
      await blobs.withFile(await stored, async () => null);
      expect(await readdir(join(s3.temporary, 'files'))).toEqual([]);
    });

    it('stores a content that is put while it is being removed', async () => {
      const proxy = await startS3Proxy(s3.server.options.endpoint ?? '');
      const client = s3.open({ endpoint: proxy.endpoint, replyMs: 30_000 });
      const isLook = (_method: string, url: string) => url.includes('list-type=2');
      // The writer looks for locks while there is one, or when it is gone together with what has been written.
      for (const isLocked of [true, false]) {
        const content = randomBytes(100);
        const { hash } = await client.put(chunksOf(content), MAX);
        const deletion = proxy.hold((method, url) => method === 'DELETE' && url.includes(`/${hash}?`));
        const removed = client.remove(hash, { putBeforeMs: Date.now() + 60_000 });
        await deletion.arrived;
        const look = proxy.hold(isLook);
        const stored = client.put(chunksOf(content), MAX).then(() => 'stored');
        expect(await Promise.race([stored, look.arrived])).toBe('arrived');
        const last = isLocked ? proxy.hold(isLook) : look;
        if (isLocked) look.release();
        expect(await Promise.race([stored, last.arrived])).toBe('arrived');
        deletion.release();
        expect(await removed).toBe(100);
        last.release();
        await stored;
        expect(await client.size(hash)).toBe(100);
        expect((await objectsIn(s3.server)).filter((name) => name.startsWith(`${hash}.`))).toEqual([]);
      }
      await proxy.stop();
    });

    it('waits for a removal that was broken off, until its lock is too old', async () => {
      const blobs = s3.open();
      const content = randomBytes(100);
      const { hash } = await blobs.put(chunksOf(content), MAX);
      const locks = join(s3.server.folder, s3.server.options.prefix, 'removing');
      await mkdir(locks, { recursive: true });
      const lock = join(locks, `${hash}.of-a-killed-process`);
      await writeFile(lock, '');
      await expect(blobs.put(chunksOf(content), MAX)).rejects.toMatchObject({ code: 'store_unavailable' });
      const before = new Date(Date.now() - 10 * 60_000);
      await utimes(lock, before, before);
      expect(await blobs.put(chunksOf(content), MAX)).toEqual({ hash, bytes: 100 });
      expect((await objectsIn(s3.server)).filter((name) => name.startsWith(`${hash}.`))).toEqual([]);
    });
  });
});
