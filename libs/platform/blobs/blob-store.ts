import type { Readable } from 'node:stream';

/** Names a content. */
export interface Blob {
  /** SHA-256 of the content, in hex. */
  readonly hash: string;
  readonly bytes: number;
}

/** The content has more bytes than allowed. Nothing of it is stored. */
export class BlobTooLarge extends Error {
  override readonly name = 'BlobTooLarge';
  readonly maxBytes: number;

  constructor(maxBytes: number) {
    super(`The content has more than ${maxBytes} bytes`);
    this.maxBytes = maxBytes;
  }
}

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Contents of any size, named by what they contain.
 *
 * Guarantees:
 * - `put` returns when the content survives a crash of the process and of the machine. Write a blob before the event that
 *   names it: a blob that an event names can then be read.
 * - A blob is there as a whole or not at all, also for readers in other processes on the same storage.
 * - The same content is stored once, also when several writers put it at the same time. A blob never changes.
 * - Memory is bounded by a few chunks, for writers and readers alike.
 * - All methods fail with a `store_unavailable` fault if the storage fails, and so do the streams of `read`.
 * - Readers never receive content that differs from the blob's: the storage, or a proxy before it, may be damaged. A whole content is
 *   compared with its hash, a part of it with its place and length. A difference is read again, then a fault.
 *
 * - `remove` does not affect a `put` of the same content, in whatever process and order: once `put` has returned, the blob
 *   is there, and `remove` finds that it was put then. The caller decides what may be removed: nothing counts what names a
 *   blob.
 *
 * Omissions: blobs are not encrypted. The bytes of a part are not compared with anything.
 */
export interface BlobStore {
  readonly kind: 'folder' | 's3';
  /** Resolves if the storage answers. */
  ping(): Promise<void>;
  /** @throws BlobTooLarge; the error of `content` */
  put(content: AsyncIterable<Uint8Array>, limits: { readonly maxBytes: number }): Promise<Blob>;
  /** Size in bytes; null if there is no such blob. */
  size(hash: string): Promise<number | null>;
  /**
   * The content, or a part of it. Read the stream to its end or destroy it. Only its end says that what came before is
   * right.
   *
   * @param range within the size of the blob
   * @returns null if there is no such blob
   */
  read(blob: Blob, range?: ByteRange): Promise<Readable | null>;
  /**
   * Calls `use` with the path of a local file with the content. It must not change the file, nor use it after it has ended.
   *
   * @returns null if there is no such blob
   */
  withFile<Result>(blob: Blob, use: (path: string) => Promise<Result>): Promise<Result | null>;
  /** The hashes of all blobs, in any order; those that are put or removed meanwhile may be missing. */
  list(): AsyncIterable<string>;
  /**
   * Removes a blob unless it was put at or after `putBeforeMs`, in Unix milliseconds: `put` of a content that is there
   * counts as well. The time must be some minutes ago, as clocks differ.
   *
   * @returns its size in bytes; null if there is no such blob, or if it was put since
   */
  remove(hash: string, condition: { readonly putBeforeMs: number }): Promise<number | null>;
  /** Closes the connections. */
  close(): void;
}
