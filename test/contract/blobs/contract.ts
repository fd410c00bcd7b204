/** What every adapter of `BlobStore` guarantees. */
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Blob, type BlobStore, BlobTooLarge } from '#libs/platform/blobs/index.ts';
import { rounds } from '#test/support/rounds.ts';

export interface BlobStoreStage {
  /** A client of the storage; each call gives another one, as another process has it. */
  open(): BlobStore;
  /** Number of contents that the storage holds, complete or not. */
  count(): Promise<number>;
  /** Makes the storage believe that these blobs were put days ago. */
  age(hashes: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

const MAX = { maxBytes: 8 * 1024 * 1024 };

export async function* chunksOf(content: Uint8Array, size = 64 * 1024): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');
const blobOf = (content: Uint8Array): Blob => ({ hash: hashOf(content), bytes: content.length });
/** Hashes: comparing long buffers takes seconds. */
const readHash = async (stream: Readable | null) =>
  stream && hashOf(Buffer.concat((await stream.toArray()) as Buffer[]));

export function describeBlobStore(adapter: string, start: () => Promise<BlobStoreStage>): void {
  describe(`the blob store ${adapter}`, () => {
    let stage: BlobStoreStage;
    let blobs: BlobStore;
    beforeAll(async () => {
      stage = await start();
      blobs = stage.open();
    });
    afterAll(() => stage?.stop());

    it('answers before anything is stored', async () => {
      await blobs.ping();
      expect(await stage.count()).toBe(0);
    });

    it.each([0, 1, 65_536, 3_000_001, 20 * 65_536])(
      'returns a content of %i bytes, also to another client',
      async (bytes) => {
        const content = randomBytes(bytes);
        expect(await blobs.put(chunksOf(content), MAX)).toEqual({ hash: hashOf(content), bytes });
        const other = stage.open();
        expect(await other.size(hashOf(content))).toBe(bytes);
        expect(await readHash(await other.read(blobOf(content)))).toBe(hashOf(content));
        expect(await other.withFile(blobOf(content), async (path) => hashOf(await readFile(path)))).toBe(
          hashOf(content),
        );
      },
    );

    it('returns ranges, both ends included', async () => {
      const content = randomBytes(200_000);
      const blob = await blobs.put(chunksOf(content), MAX);
      for (const [start, end] of [
        [0, 0],
        [0, 199_999],
        [65_535, 131_073],
        [199_999, 199_999],
      ] as const) {
        const expected = hashOf(content.subarray(start, end + 1));
        expect(await readHash(await blobs.read(blob, { start, end }))).toBe(expected);
      }
    });

    it('has no blob that was not put', async () => {
      const blob = blobOf(randomBytes(8));
      expect(await blobs.size(blob.hash)).toBeNull();
      expect(await blobs.read(blob)).toBeNull();
      expect(await blobs.withFile(blob, async () => 'used')).toBeNull();
    });

    it('lists its blobs, whatever else is there', async () => {
      const { hash } = await blobs.put(chunksOf(randomBytes(10)), MAX);
      const listed = await Array.fromAsync(blobs.list());
      expect(listed).toContain(hash);
      expect(new Set(listed).size).toBe(listed.length);
      for (const one of listed) expect(await blobs.size(one)).not.toBeNull();
    });

    it('removes a blob, unless it was put since', async () => {
      const content = randomBytes(1_000);
      const { hash } = await blobs.put(chunksOf(content), MAX);
      expect(await blobs.remove(hash, { putBeforeMs: Date.now() - 60_000 })).toBeNull();
      expect(await blobs.size(hash)).toBe(1_000);
      expect(await blobs.remove(hash, { putBeforeMs: Date.now() + 60_000 })).toBe(1_000);
      expect(await blobs.size(hash)).toBeNull();
      expect(await blobs.remove(hash, { putBeforeMs: Date.now() + 60_000 })).toBeNull();
      expect(await Array.fromAsync(blobs.list())).not.toContain(hash);
      await blobs.put(chunksOf(content), MAX);
      expect(await readHash(await blobs.read(blobOf(content)))).toBe(hash);
    });

    it('has each blob that was put, however many remove older ones of the same content meanwhile', async () => {
      const contents = Array.from({ length: rounds(20) }, () => randomBytes(100));
      for (const content of contents) await blobs.put(chunksOf(content), MAX);
      await stage.age(contents.map(hashOf));
      const before = await stage.count();
      const putBeforeMs = Date.now() - 60_000;
      const [writer, ...removers] = [stage.open(), stage.open(), stage.open()];
      const stored = await Promise.all(
        contents.map(async (content) => {
          const removed = removers.map((remover) => remover.remove(hashOf(content), { putBeforeMs }));
          const blob = await writer!.put(chunksOf(content), MAX);
          const size = await blobs.size(blob.hash);
          await Promise.all(removed);
          return [size, await blobs.size(blob.hash), await readHash(await blobs.read(blob))];
        }),
      );
      expect(stored).toEqual(contents.map((content) => [100, 100, hashOf(content)]));
      expect(await stage.count()).toBe(before);
    });

    it('has a new blob at any time while others try to remove it', async () => {
      const blob = await blobs.put(chunksOf(randomBytes(100)), MAX);
      const { hash } = blob;
      const other = stage.open();
      const done = new AbortController();
      const removing = (async () => {
        while (!done.signal.aborted) expect(await other.remove(hash, { putBeforeMs: Date.now() - 60_000 })).toBeNull();
      })();
      for (let n = 0; n < rounds(50); n += 1) {
        expect(await blobs.size(hash)).toBe(100);
        expect(await readHash(await blobs.read(blob))).toBe(hash);
      }
      done.abort();
      await removing;
    });

    it('refuses what is not a hash', async () => {
      for (const hash of ['', '../../etc/passwd', 'A'.repeat(64), `${'a'.repeat(64)}\n`]) {
        await expect(blobs.read({ hash, bytes: 1 })).rejects.toThrow(TypeError);
        await expect(blobs.size(hash)).rejects.toThrow(TypeError);
        await expect(blobs.withFile({ hash, bytes: 1 }, async () => null)).rejects.toThrow(TypeError);
        await expect(blobs.remove(hash, { putBeforeMs: Infinity })).rejects.toThrow(TypeError);
      }
    });

    it('stores the same content once, for concurrent writers as well', async () => {
      const content = randomBytes(500_000);
      const before = await stage.count();
      const clients = [blobs, blobs, stage.open(), stage.open()];
      const stored = await Promise.all(clients.map((client) => client.put(chunksOf(content), MAX)));
      expect(new Set(stored.map(({ hash }) => hash))).toEqual(new Set([hashOf(content)]));
      expect(await stage.count()).toBe(before + 1);
      expect(await readHash(await blobs.read(blobOf(content)))).toBe(hashOf(content));
    });

    it('takes exactly the largest size, and keeps nothing of a larger content', async () => {
      const content = randomBytes(100_001);
      const before = await stage.count();
      await expect(blobs.put(chunksOf(content), { maxBytes: 100_000 })).rejects.toThrow(BlobTooLarge);
      expect(await stage.count()).toBe(before);
      expect(await blobs.put(chunksOf(content), { maxBytes: 100_001 })).toMatchObject({ bytes: 100_001 });
    });

    it('keeps nothing of a content that fails, and fails with its error', async () => {
      const before = await stage.count();
      const broken = async function* () {
        yield randomBytes(100_000);
        throw new RangeError('the sender has gone');
      };
      await expect(blobs.put(broken(), MAX)).rejects.toThrow(new RangeError('the sender has gone'));
      expect(await stage.count()).toBe(before);
    });
  });
}
