import { existsSync, mkdirSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

import { deleteIndexFile } from './index-file.ts';
import { GraphIndex } from './graph-index.ts';

/** Closed when they have not been used for this time. */
const IDLE_MS = 5 * 60_000;
/** Deleted when they have not been used for this time. */
const UNUSED_MS = 30 * 24 * 60 * 60_000;

export interface IndexCacheOptions {
  readonly folder: string;
  /** Limits of what stays open; the index in use may be larger. */
  readonly maxOpen: number;
  readonly maxBytes: number;
  /** Null: no vectors. `key` names the model: vectors of another one are in other files. */
  readonly vectors?: { readonly key: string; readonly minSimilarity: number } | null;
}

/** The open indexes of one thread. Those that were not used for longest are closed when there are too many. */
export class IndexCache {
  readonly #options: IndexCacheOptions;
  /** Least recently used first. */
  readonly #open = new Map<string, { readonly index: GraphIndex; usedMs: number; bytes: number }>();

  constructor(options: IndexCacheOptions) {
    this.#options = options;
  }

  /** @param graphId the id of an entity: letters, digits, `-` and `_`. Errors: those of SQLite */
  use<T>(graphId: string, work: (index: GraphIndex) => T): T {
    const open = this.#open.get(graphId) ?? { index: this.#openOne(graphId), usedMs: 0, bytes: 0 };
    this.#open.delete(graphId);
    this.#open.set(graphId, open);
    open.usedMs = performance.now();
    const result = work(open.index);
    open.bytes = open.index.bytes;
    this.#closeBeyondLimits();
    return result;
  }

  /** Whether there is an index, open or not. */
  has(graphId: string): boolean {
    return this.#open.has(graphId) || existsSync(this.#pathOf(graphId));
  }

  get measures(): { readonly count: number; readonly bytes: number } {
    return { count: this.#open.size, bytes: this.#bytes() };
  }

  /** Closes the index and deletes its file; vectors stay, as they follow from texts. */
  delete(graphId: string): void {
    this.#closeOne(graphId);
    deleteIndexFile(this.#pathOf(graphId));
  }

  /** Closes the index and deletes all files of the graph. */
  remove(graphId: string): void {
    this.#closeOne(graphId);
    for (const name of this.#files()) if (name.startsWith(`${graphId}.`)) this.#removeFile(name);
  }

  closeIdle(): void {
    const since = performance.now() - IDLE_MS;
    for (const [graphId, { usedMs }] of this.#open) if (usedMs < since) this.#closeOne(graphId);
    for (const graphId of this.#open.keys()) this.#markUsed(graphId);
  }

  /**
   * Deletes files that no process has used for 30 days: of graphs that were deleted elsewhere, or are not asked any more.
   * The time of a file is that of its last use.
   */
  removeUnused(nowMs: number): void {
    for (const name of this.#files()) {
      const [graphId = ''] = name.split('.');
      const usedMs = statSync(join(this.#options.folder, name), { throwIfNoEntry: false })?.mtimeMs ?? nowMs;
      if (usedMs < nowMs - UNUSED_MS && !this.#open.has(graphId)) this.#removeFile(name);
    }
  }

  /** Databases; the files that SQLite keeps beside them belong to them. */
  #files(): string[] {
    try {
      return readdirSync(this.#options.folder).filter((name) => /\.(?:sqlite|vectors)$/.test(name));
    } catch {
      // Before the first index there is no folder.
      return [];
    }
  }

  #removeFile(name: string): void {
    deleteIndexFile(join(this.#options.folder, name));
  }

  close(): void {
    for (const graphId of this.#open.keys()) this.#closeOne(graphId);
  }

  #openOne(graphId: string): GraphIndex {
    // It holds what organizations know. A cleaner of temporary folders may have removed it.
    mkdirSync(this.#options.folder, { recursive: true, mode: 0o700 });
    const index = new GraphIndex(this.#pathOf(graphId), this.#vectorsOf(graphId));
    this.#markUsed(graphId);
    return index;
  }

  /** Reading a file does not change its time. */
  #markUsed(graphId: string): void {
    const now = new Date();
    for (const path of [this.#pathOf(graphId), this.#vectorsOf(graphId)?.path]) {
      if (path !== undefined && existsSync(path)) utimesSync(path, now, now);
    }
  }

  #vectorsOf(graphId: string) {
    const { vectors = null } = this.#options;
    return vectors && { ...vectors, path: this.#pathOf(graphId, `${vectors.key}.vectors`) };
  }

  #closeBeyondLimits(): void {
    const { maxOpen, maxBytes } = this.#options;
    for (const graphId of [...this.#open.keys()].slice(0, -1)) {
      if (this.#open.size <= maxOpen && this.#bytes() <= maxBytes) return;
      this.#closeOne(graphId);
    }
  }

  #closeOne(graphId: string): void {
    this.#open.get(graphId)?.index.close();
    this.#open.delete(graphId);
  }

  #bytes(): number {
    return [...this.#open.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #pathOf(graphId: string, ending = 'sqlite'): string {
    return join(this.#options.folder, `${graphId}.${ending}`);
  }
}
