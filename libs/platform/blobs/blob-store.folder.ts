import { randomUUID } from 'node:crypto';
import { access, constants, link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

import { makeFolder } from '#libs/platform/files/index.ts';

import { checked, isHash, nullIfMissing, removeAbandoned, statOrNull, writeContent } from './blob-content.ts';
import { OtherContent, storage } from './blob-faults.ts';
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

/** Hexadecimal digits at the start of a removed file's name. */
const HASH_LENGTH = 64;
/** A removal takes milliseconds: an older file in `removed` is what a killed process has left behind. */
const UNFINISHED_MS = 60 * 60_000;

/**
 * Blobs in a folder: `<first two digits>/<hash>`, written as `incoming/<uuid>` first, and removed by way of
 * `removed/<hash>.<uuid>`. The folder is created by the first `put`. Processes may share it.
 */
export function folderBlobStore(folder: string): BlobStore {
  return new FolderBlobStore(folder);
}

class FolderBlobStore implements BlobStore {
  readonly kind = 'folder';
  readonly #folder: string;
  readonly #incoming: string;
  readonly #removed: string;
  #isOpened = false;
  /** Folders whose own names are on disk. */
  readonly #named = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
    this.#incoming = join(folder, 'incoming');
    this.#removed = join(folder, 'removed');
  }

  async put(content: AsyncIterable<Uint8Array>, { maxBytes }: { readonly maxBytes: number }): Promise<Blob> {
    const path = join(this.#incoming, randomUUID());
    await storage(this.#open());
    const file = await storage(open(path, 'wx', 0o600));
    try {
      const blob = await writeContent(file, content, maxBytes)
        .then((blob) => storage(file.sync()).then(() => blob))
        .finally(() => storage(file.close()));
      await storage(this.#publish(path, blob.hash));
      return blob;
    } catch (error) {
      await rm(path, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async size(hash: string): Promise<number | null> {
    return (await storage(this.#find(checked(hash), statOrNull)))?.size ?? null;
  }

  async read(blob: Blob, range: ByteRange = wholeOf(blob)): Promise<Readable | null> {
    return storage(checkedStream(this.#source(blob), blob, range).catch(nullIfNoSuchBlob));
  }

  async withFile<Result>(blob: Blob, use: (path: string) => Promise<Result>): Promise<Result | null> {
    const source = this.#source(blob);
    const compare = () => Array.fromAsync(checkedContent(source, blob, wholeOf(blob)), () => undefined);
    const found = await storage(rereading(compare).catch(nullIfNoSuchBlob));
    const pathIfThere = async (path: string) => ((await statOrNull(path)) === null ? null : path);
    const path = found && (await storage(this.#find(blob.hash, pathIfThere)));
    return path === null ? null : use(path);
  }

  async *list(): AsyncGenerator<string> {
    await storage(this.#undoUnfinished());
    for (const part of await storage(namesIn(this.#folder))) {
      if (!/^[0-9a-f]{2}$/.test(part)) continue;
      yield* (await storage(namesIn(join(this.#folder, part)))).filter(isHash);
    }
  }

  async remove(hash: string, { putBeforeMs }: { readonly putBeforeMs: number }): Promise<number | null> {
    return storage(this.#remove(checked(hash), putBeforeMs));
  }

  async ping(): Promise<void> {
    // Missing until the first `put`. With the slash, a file in its place is an error.
    await storage(access(`${this.#folder}/`, constants.R_OK | constants.W_OK).catch(nullIfMissing));
  }

  close(): void {}

  async #open(): Promise<void> {
    if (this.#isOpened) return;
    makeFolder(this.#incoming);
    await syncFolder(this.#folder);
    await removeAbandoned(this.#incoming);
    this.#isOpened = true;
  }

  async #publish(path: string, hash: string): Promise<void> {
    const parent = this.#folderOf(hash);
    if (!this.#named.has(parent)) {
      makeFolder(parent);
      await syncFolder(this.#folder);
      this.#named.add(parent);
    }
    // Replaces an equal file, and renews its time. Another writer may have named that one and died before the name was
    // on disk.
    await rename(path, this.#pathOf(hash));
    await syncFolder(parent);
  }

  /** Calls `use` with the paths where the file may be, until one is right: a removal moves it for a moment. */
  async #find<Result>(hash: string, use: (path: string) => Promise<Result | null>): Promise<Result | null> {
    const found = await use(this.#pathOf(hash));
    if (found !== null) return found;
    const moved = (await namesIn(this.#removed)).filter((name) => name.startsWith(hash));
    for (const path of [...moved.map((name) => join(this.#removed, name)), this.#pathOf(hash)]) {
      const found = await use(path);
      if (found !== null) return found;
    }
    return null;
  }

  async #remove(hash: string, putBeforeMs: number): Promise<number | null> {
    // A new file stays where it is, because readers miss one that is moved.
    const found = await stat(this.#pathOf(hash)).catch(nullIfMissing);
    if (found === null || found.mtimeMs >= putBeforeMs) return null;
    // Moved first, and judged again then: another `put` may have replaced the file.
    const moved = join(this.#removed, `${hash}.${randomUUID()}`);
    makeFolder(this.#removed);
    const isMoved = await rename(this.#pathOf(hash), moved).then(() => true, nullIfMissing);
    if (isMoved === null) return null;
    const { mtimeMs, size } = await stat(moved);
    if (mtimeMs < putBeforeMs) {
      await rm(moved);
      return size;
    }
    await rename(moved, this.#pathOf(hash));
    await syncFolder(this.#folderOf(hash));
    return null;
  }

  /** Puts back what a killed process was removing: whether it may be removed has to be decided again. */
  async #undoUnfinished(): Promise<void> {
    for (const name of await namesIn(this.#removed)) {
      const moved = join(this.#removed, name);
      const found = await statOrNull(moved);
      if (found === null || Date.now() - found.ctimeMs < UNFINISHED_MS) continue;
      // Not renamed: that would replace a newer file.
      await link(moved, this.#pathOf(name.slice(0, HASH_LENGTH))).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      await rm(moved, { force: true });
    }
  }

  #source({ hash, bytes }: Blob): BlobSource {
    const name = this.#pathOf(checked(hash));
    return {
      name,
      open: async (range) => {
        const file = await this.#find(hash, (path) => open(path).catch(nullIfMissing));
        if (file === null) throw new NoSuchBlob(name);
        const { size } = await file.stat();
        if (size === bytes) return file.createReadStream(range);
        await file.close();
        throw new OtherContent(`${name} has ${size} bytes instead of ${bytes}`);
      },
    };
  }

  #folderOf(hash: string): string {
    return join(this.#folder, hash.slice(0, 2));
  }

  #pathOf(hash: string): string {
    return join(this.#folderOf(hash), hash);
  }
}

/** Empty for a missing folder. */
async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(nullIfMissing)) ?? [];
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path);
  await handle.sync().finally(() => handle.close());
}
