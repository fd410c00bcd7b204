/** Parts of both adapters: the names of blobs, and writing a content to a file. */
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { type FileHandle, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { storage } from './blob-faults.ts';
import { type Blob, BlobTooLarge } from './blob-store.ts';

const HASH = /^[0-9a-f]{64}$/;
/** Chunks that are written together: each write takes the processor time of several copies. Sockets give up to 64 KiB. */
const WRITE_CHUNKS = 16;
/** Files that a killed process has left behind. A running writer changes its file more often. */
const ABANDONED_MS = 24 * 60 * 60_000;

export function isHash(name: string): boolean {
  return HASH.test(name);
}

/** Hashes name files: one that is none is a bug, and must not become a path. */
export function checked(hash: string): string {
  if (!HASH.test(hash)) throw new TypeError('not a hash of a blob');
  return hash;
}

/** Writes the content to `file`. @throws BlobTooLarge; the error of `content`; `Fault` `store_unavailable` */
export async function writeContent(
  file: FileHandle,
  content: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Blob> {
  const digest = createHash('sha256');
  let bytes = 0;
  let waiting: Uint8Array[] = [];
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new BlobTooLarge(maxBytes);
    digest.update(chunk);
    waiting.push(chunk);
    if (waiting.length < WRITE_CHUNKS) continue;
    await storage(writeAll(file, waiting));
    waiting = [];
  }
  await storage(writeAll(file, waiting));
  return { hash: digest.digest('hex'), bytes };
}

async function writeAll(file: FileHandle, chunks: readonly Uint8Array[]): Promise<void> {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
  const { bytesWritten } = await file.writev(chunks);
  // A nearly full disk takes a part. Unlike `writev`, this continues until it takes no more.
  if (bytesWritten < bytes) await file.writeFile(Buffer.concat(chunks).subarray(bytesWritten));
}

/** Another process may remove or move files of the folder at the same time. */
export async function removeAbandoned(folder: string): Promise<void> {
  const now = Date.now();
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await statOrNull(path);
    if (found !== null && now - found.mtimeMs > ABANDONED_MS) await rm(path, { force: true });
  }
}

export function statOrNull(path: string): Promise<Stats | null> {
  return stat(path).catch(nullIfMissing);
}

export function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
