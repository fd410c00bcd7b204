import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { type Blob, type BlobStore, BlobTooLarge, rereading } from '#libs/platform/blobs/index.ts';
import { FunctionLibrary, type RedisClient } from '#libs/platform/redis/index.ts';

import { uploadKey } from './uploads.keys.ts';

/** Of an upload, and of a file that is fetched. */
export const MAX_FILE_BYTES = 100 * 1024 * 1024;
/** Time in which an upload can be continued. Its parts are blobs that no event names, so they must not be swept earlier. */
export const UPLOAD_VALID_MS = 24 * 60 * 60_000;
/** Bytes that are lost when a process is killed while it receives a part. */
const PART_BYTES = 8 * 1024 * 1024;
export const MAX_PARTS = 1_000;

const declared = z.object({
  length: z.int(),
  /** Unix milliseconds. */
  expiresAtMs: z.number(),
  /** Who began it; null in uploads of earlier versions. */
  ownerId: z.string().nullable().default(null),
  /** `Upload-Metadata` as it was sent. */
  metadata: z.string().nullable(),
  /** For the media item. */
  described: z.object({
    name: z.string(),
    description: z.string().nullable(),
    knowledgeGraph: z.string().nullable(),
    channel: z.string().nullable(),
    message: z.string().nullable(),
  }),
});
const storedPart = z.object({ hash: z.string(), bytes: z.int() });

export interface Upload extends z.infer<typeof declared> {
  /** The id of the media item that the upload becomes. */
  readonly id: EntityId;
  readonly organizationId: EntityId;
  readonly parts: readonly Blob[];
  /** Bytes in `parts`. */
  readonly offset: number;
}

/** The bytes that a request brings of an upload. */
export interface ArrivingContent {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Whether nothing more will arrive. */
  hasEnded(): boolean;
  /** Ends `chunks` with the reason. */
  interrupt(reason: Error): void;
}

/** Another request has continued the upload. */
export class UploadContinued extends Error {
  override readonly name = 'UploadContinued';
}

/** The upload was removed, has expired, or lacks a part. */
export class UploadGone extends Error {
  override readonly name = 'UploadGone';
}

/**
 * Uploads that are continued by several requests. Each part is a blob; Redis holds which parts there are.
 *
 * Guarantees: of requests that continue an upload at the same offset, one succeeds. Parts survive a restart of the process
 * and are visible to all processes.
 * Omissions: a Redis that loses its data loses the uploads that are not complete, and their clients begin again.
 */
export class Uploads {
  readonly #redis: RedisClient;
  readonly #functions: FunctionLibrary;
  readonly #blobs: BlobStore;
  /** Requests of this process that continue uploads, by {@link uploadKey}: the newest of each. */
  readonly #continuing = new Map<string, { readonly content: ArrivingContent; readonly stored: Promise<unknown> }>();

  constructor(redis: RedisClient, blobs: BlobStore) {
    this.#redis = redis;
    this.#functions = new FunctionLibrary(redis, new URL('./lua/uploads.lua', import.meta.url));
    this.#blobs = blobs;
  }

  /** An upload with this id stays as it is: it was begun by an earlier run of the same request. */
  async begin(organizationId: EntityId, id: EntityId, upload: z.infer<typeof declared>): Promise<void> {
    await this.#call('begin', uploadKey(organizationId, id), [JSON.stringify(upload), upload.expiresAtMs]);
  }

  /**
   * What a request of this process has brought counts once the request has ended: a client whose connection broke asks
   * for the offset at once, while its last part is being stored.
   *
   * @returns null if the organization has no such upload
   */
  async find(organizationId: EntityId, id: EntityId): Promise<Upload | null> {
    const key = uploadKey(organizationId, id);
    const continuing = this.#continuing.get(key);
    if (continuing?.content.hasEnded() === true) await continuing.stored;
    const { upload, ...parts } = await this.#redis.send(key, (node) => node.hgetall(key));
    if (upload === undefined) return null;
    const found = { id, organizationId, parts: [] as Blob[], offset: 0 };
    for (let part = parts['0']; part !== undefined; part = parts[found.offset]) {
      const blob = storedPart.parse(JSON.parse(part));
      found.parts.push(blob);
      found.offset += blob.bytes;
    }
    return { ...declared.parse(JSON.parse(upload)), ...found };
  }

  /**
   * Ends the request of this process that continues an upload, and waits until what it has brought is stored. The end of
   * its connection may not have been noticed yet: without this, it would move the offset that its client reads.
   */
  async interrupt(organizationId: EntityId, id: EntityId): Promise<void> {
    const continuing = this.#continuing.get(uploadKey(organizationId, id));
    continuing?.content.interrupt(new UploadContinued());
    await continuing?.stored;
  }

  /**
   * Continues an upload. What arrives before `content` fails is kept.
   *
   * @param complete called with the whole file before the last part is kept: if it fails, the client repeats that part
   * @returns the offset after it
   * @throws UploadContinued; UploadGone; BlobTooLarge; the error of `content`; `Fault` `store_unavailable`
   */
  async append(upload: Upload, content: ArrivingContent, complete: (file: Blob) => Promise<void>): Promise<number> {
    const key = uploadKey(upload.organizationId, upload.id);
    const appended = this.#append(upload, content.chunks, complete);
    const continuing = { content, stored: appended.catch(() => undefined) };
    this.#continuing.set(key, continuing);
    try {
      return await appended;
    } finally {
      if (this.#continuing.get(key) === continuing) this.#continuing.delete(key);
    }
  }

  async #append(
    upload: Upload,
    content: AsyncIterable<Uint8Array>,
    complete: (file: Blob) => Promise<void>,
  ): Promise<number> {
    const reader = new PartReader(content, upload.length - upload.offset);
    const parts = [...upload.parts];
    let { offset } = upload;
    try {
      while (parts.length < MAX_PARTS && (await reader.hasMore())) {
        const part = await this.#blobs.put(reader.part(PART_BYTES), { maxBytes: PART_BYTES });
        const isLast = offset + part.bytes === upload.length;
        if (isLast) await this.#complete([...parts, part], reader, complete);
        await this.#add(upload, offset, part, isLast);
        parts.push(part);
        offset += part.bytes;
      }
      reader.throwFailure();
      return offset;
    } finally {
      await reader.close();
    }
  }

  async remove(organizationId: EntityId, id: EntityId): Promise<void> {
    await this.#redis.remove([uploadKey(organizationId, id)]);
  }

  async #complete(parts: readonly Blob[], reader: PartReader, complete: (file: Blob) => Promise<void>): Promise<void> {
    // Content beyond the length is refused before the upload counts as complete.
    await reader.hasMore();
    const [only, ...others] = parts;
    const isOne = only !== undefined && others.length === 0;
    const join = () => this.#blobs.put(this.#joined(parts), { maxBytes: MAX_FILE_BYTES });
    await complete(isOne ? only : await rereading(join));
  }

  async *#joined(parts: readonly Blob[]): AsyncGenerator<Uint8Array> {
    for (const part of parts) {
      const content = await this.#blobs.read(part);
      if (content === null) throw new UploadGone();
      yield* content;
    }
  }

  async #add({ organizationId, id }: Upload, offset: number, part: Blob, isLast: boolean): Promise<void> {
    const reply = await this.#call('add', uploadKey(organizationId, id), [offset, JSON.stringify(part)]);
    // Once it is complete, another request can only have added the same.
    if (isLast || reply === 1) return;
    throw reply === 0 ? new UploadContinued() : new UploadGone();
  }

  async #call(name: 'begin' | 'add', key: string, args: readonly (string | number)[]): Promise<unknown> {
    const [reply] = await this.#functions.callAll([{ name: `parley_uploads_${name}_v1`, keys: [key], args }]);
    return reply;
  }
}

/** Divides a content into parts. A content that fails ends there, and `throwFailure` says so afterwards. */
class PartReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #maxBytes: number;
  #bytes = 0;
  #rest: Uint8Array = new Uint8Array();
  #hasEnded = false;
  #failure: unknown;

  constructor(content: AsyncIterable<Uint8Array>, maxBytes: number) {
    this.#source = content[Symbol.asyncIterator]();
    this.#maxBytes = maxBytes;
  }

  /** Waits for the next bytes. @throws BlobTooLarge */
  async hasMore(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#hasEnded) {
      try {
        const { done, value } = await this.#source.next();
        if (done) this.#hasEnded = true;
        else this.#rest = value;
      } catch (error) {
        this.#hasEnded = true;
        this.#failure = error;
      }
      this.#bytes += this.#rest.length;
    }
    if (this.#bytes > this.#maxBytes) throw new BlobTooLarge(this.#maxBytes);
    return this.#rest.length > 0;
  }

  /** Up to `maxBytes` of what comes next. */
  async *part(maxBytes: number): AsyncGenerator<Uint8Array> {
    for (let left = maxBytes; left > 0 && (await this.hasMore());) {
      const chunk = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(chunk.length);
      left -= chunk.length;
      yield chunk;
    }
  }

  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}
