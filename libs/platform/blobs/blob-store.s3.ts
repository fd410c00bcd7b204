import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';

import type { ListObjectsV2CommandOutput, S3 } from '@aws-sdk/client-s3';

import { makeFolder } from '#libs/platform/files/index.ts';
import { pause, retry } from '#libs/platform/lifecycle/index.ts';

import { checked, isHash, removeAbandoned, writeContent } from './blob-content.ts';
import { storage } from './blob-faults.ts';
import type { Blob, BlobStore, ByteRange } from './blob-store.ts';
import {
  type BlobSource,
  checkedContent,
  checkedStream,
  NoSuchBlob,
  nullIfNoSuchBlob,
  rereading,
  wholeOf,
} from './checked-content.ts';
import { connectS3, contentOfReply, IDLE_MS, mayPass, nullIfNotFound, putSigned, type S3Options } from './s3-client.ts';

/** Of requests with a content, which the SDK does not repeat. */
const PUT_ATTEMPTS = 3;
const CHUNK_BYTES = 64 * 1024;

/** A removal that has not deleted the blob by then ends without it. */
const REMOVAL_MS = 10_000;
/** Older locks are ignored: their removals have ended, whether they released them or not. */
const LOCK_VALID_MS = 2 * 60_000;
const LOCK_WAIT_MS = 4_000;

/**
 * Blobs in a bucket: `<prefix><first two digits>/<hash>`, as in a folder. A content is written to a temporary file first,
 * because its name is known at its end, and sent in one request; the store checks it against its hash.
 *
 * A removal holds a lock meanwhile, `<prefix>removing/<hash>.<uuid>`. After `put` has written, it looks for locks, and
 * then whether the blob is still there: a removal whose lock it does not see begins later, and finds that the blob is
 * new. The store must be strongly consistent, as S3 is.
 *
 * @param folder for temporary files; created when needed
 */
export function s3BlobStore(options: S3Options, folder: string): BlobStore {
  return new S3BlobStore(options, folder);
}

interface Found {
  /** Null if the store does not say so. */
  readonly bytes: number | null;
  readonly putMs: number;
}

class S3BlobStore implements BlobStore {
  readonly kind = 's3';
  readonly #options: S3Options;
  readonly #folder: string;
  #client: Promise<S3> | undefined;
  #isOpened = false;

  constructor(options: S3Options, folder: string) {
    this.#options = options;
    this.#folder = folder;
  }

  async put(content: AsyncIterable<Uint8Array>, { maxBytes }: { readonly maxBytes: number }): Promise<Blob> {
    const file = await storage(this.#temporaryFile());
    try {
      const blob = await writeContent(file, content, maxBytes);
      await storage(this.#publish(blob, file));
      return blob;
    } finally {
      await file.close();
    }
  }

  async size(hash: string): Promise<number | null> {
    return (await storage(this.#head(checked(hash))))?.bytes ?? null;
  }

  async read(blob: Blob, range: ByteRange = wholeOf(blob)): Promise<Readable | null> {
    return storage(checkedStream(this.#source(blob), blob, range).catch(nullIfNoSuchBlob));
  }

  async withFile<Result>(blob: Blob, use: (path: string) => Promise<Result>): Promise<Result | null> {
    const source = this.#source(blob);
    await storage(this.#openFolder());
    const path = join(this.#folder, randomUUID());
    const write = async () => {
      await pipeline(checkedContent(source, blob, wholeOf(blob)), createWriteStream(path, { mode: 0o600 }));
      return path;
    };
    try {
      const found = await storage(rereading(write).catch(nullIfNoSuchBlob));
      return found === null ? null : await use(path);
    } finally {
      await rm(path, { force: true });
    }
  }

  async *list(): AsyncGenerator<string> {
    for await (const { key } of this.#objects('')) {
      const [folder, hash = '', ...more] = key.split('/');
      if (more.length === 0 && folder === hash.slice(0, 2) && isHash(hash)) yield hash;
    }
  }

  async remove(hash: string, { putBeforeMs }: { readonly putBeforeMs: number }): Promise<number | null> {
    return storage(this.#remove(checked(hash), putBeforeMs));
  }

  async ping(): Promise<void> {
    await storage(this.#page('', undefined, 1));
  }

  close(): void {
    void this.#client?.then((client) => client.destroy());
  }

  async #publish(blob: Blob, file: FileHandle): Promise<void> {
    const waitUntil = performance.now() + LOCK_WAIT_MS;
    for (let writes = 1; ; writes += 1) {
      await retry(() => this.#write(blob, file), {
        onFailure(error, failures) {
          if (failures === PUT_ATTEMPTS || !mayPass(error)) throw error;
        },
      });
      // In this order: a removal that begins in between finds that the blob is new.
      const locks = await Array.fromAsync(this.#objects(`${LOCKS}${blob.hash}.`));
      const found = await this.#head(blob.hash);
      // By the clock of the store.
      const isLocked = locks.some(({ modifiedMs }) => found !== null && found.putMs - modifiedMs < LOCK_VALID_MS);
      if (isLocked) {
        await this.#released(blob.hash, waitUntil);
        continue;
      }
      const bytes = found === null ? 0 : (found.bytes ?? blob.bytes);
      if (found !== null && bytes === blob.bytes) return this.#delete(locks);
      if (writes < PUT_ATTEMPTS) continue;
      throw new Error(
        `the store has acknowledged ${blob.bytes} bytes of ${nameOf(blob.hash)}, and has ${bytes} of them`,
      );
    }
  }

  async #released(hash: string, waitUntil: number): Promise<void> {
    while ((await Array.fromAsync(this.#objects(`${LOCKS}${hash}.`))).length > 0) {
      if (performance.now() > waitUntil) throw new Error('the same content is being removed');
      await pause(100);
    }
  }

  async #write({ hash, bytes }: Blob, file: FileHandle): Promise<void> {
    const content = Readable.from(contentOf(file));
    try {
      const request = { ...this.#object(nameOf(hash)), Body: content, ContentLength: bytes };
      await putSigned(await this.#open(), hash, request);
    } finally {
      content.destroy();
    }
  }

  async #remove(hash: string, putBeforeMs: number): Promise<number | null> {
    const oldOne = async (): Promise<Found | null> => {
      const found = await this.#head(hash);
      return found !== null && found.putMs < putBeforeMs ? found : null;
    };
    if ((await oldOne()) === null) return null;
    const client = await this.#open();
    const startedAt = performance.now();
    const lock = this.#object(`${LOCKS}${hash}.${randomUUID()}`);
    await client.putObject({ ...lock, Body: '' });
    const found = await oldOne();
    if (found !== null) {
      if (performance.now() - startedAt > REMOVAL_MS) throw new Error('the store is too slow for a safe removal');
      const { $metadata } = await client.deleteObject(this.#object(nameOf(hash)));
      // A request without a reply may still be carried out. The lock then stays until it is ignored.
      if ($metadata.attempts !== 1) return found.bytes;
    }
    await client.deleteObject(lock);
    return found?.bytes ?? null;
  }

  async #delete(objects: readonly { readonly key: string }[]): Promise<void> {
    const client = await this.#open();
    for (const { key } of objects) await client.deleteObject(this.#object(key));
  }

  async #head(hash: string): Promise<Found | null> {
    const client = await this.#open();
    const found = await client.headObject(this.#object(nameOf(hash))).catch(nullIfNotFound);
    if (found !== null) return { bytes: found.ContentLength ?? null, putMs: found.LastModified?.getTime() ?? Infinity };
    // A missing bucket gets the same reply.
    await this.#page('', undefined, 1);
    return null;
  }

  #source(blob: Blob): BlobSource {
    const object = this.#object(nameOf(checked(blob.hash)));
    const { idleMs: rateWindowMs = IDLE_MS } = this.#options;
    return {
      name: `s3://${object.Bucket}/${object.Key}`,
      rateWindowMs,
      open: async (range) => {
        const isWhole = range.start === 0 && range.end === blob.bytes - 1;
        const part = isWhole ? {} : { Range: `bytes=${range.start}-${range.end}` };
        const client = await this.#open();
        const reply = await client.getObject({ ...object, ...part }).catch((error: Error) => {
          throw error.name === 'NoSuchKey' ? new NoSuchBlob() : error;
        });
        return contentOfReply(reply, blob, range);
      },
    };
  }

  /** Objects whose names, without the prefix of all keys, begin with `start`. */
  async *#objects(start: string): AsyncGenerator<{ readonly key: string; readonly modifiedMs: number }> {
    const { prefix } = this.#options;
    let token: string | undefined;
    do {
      const page = await storage(this.#page(start, token));
      for (const { Key = '', LastModified } of page.Contents ?? []) {
        if (!Key.startsWith(`${prefix}${start}`)) continue;
        yield { key: Key.slice(prefix.length), modifiedMs: LastModified?.getTime() ?? Infinity };
      }
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  /** A part of a list. It must be one: an error or a web page with status 200 would be an empty list. */
  async #page(start: string, token: string | undefined, size?: number): Promise<ListObjectsV2CommandOutput> {
    const { bucket, prefix } = this.#options;
    const page = await (
      await this.#open()
    ).listObjectsV2({
      Bucket: bucket,
      Prefix: `${prefix}${start}`,
      ...(token !== undefined && { ContinuationToken: token }),
      ...(size !== undefined && { MaxKeys: size }),
    });
    const { IsTruncated: isTruncated, NextContinuationToken: next } = page;
    if (isTruncated === undefined) throw new Error('the answer is no list of a bucket (see MEDIA_S3_ENDPOINT)');
    if (isTruncated && (next === undefined || next === token))
      throw new Error('a list of the bucket does not continue');
    return page;
  }

  #object(name: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#options.bucket, Key: `${this.#options.prefix}${name}` };
  }

  /** Has no name from the start: nothing of it stays behind if the process is killed. */
  async #temporaryFile(): Promise<FileHandle> {
    await this.#openFolder();
    const path = join(this.#folder, randomUUID());
    const file = await open(path, 'wx+', 0o600);
    await rm(path);
    return file;
  }

  async #openFolder(): Promise<void> {
    if (this.#isOpened) return;
    makeFolder(this.#folder);
    await removeAbandoned(this.#folder);
    this.#isOpened = true;
  }

  #open(): Promise<S3> {
    this.#client ??= connectS3(this.#options);
    return this.#client;
  }
}

/** Unlike the streams of Node, does not close the file. */
async function* contentOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  for (let position = 0; ;) {
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES), position });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

const LOCKS = 'removing/';

function nameOf(hash: string): string {
  return `${hash.slice(0, 2)}/${hash}`;
}
