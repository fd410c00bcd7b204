import { existsSync, mkdirSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

import { deleteIndexFile } from './index-file.ts';

/** Closed when they have not been used for this time. */
const IDLE_MS = 5 * 60_000;
/** Deleted when they have not been used for this time. */
const UNUSED_MS = 30 * 24 * 60 * 60_000;

export interface IndexCacheOptions {
  readonly folder: string;
  /** Limits of what stays open; the index in use may be larger. */
  readonly maxOpen: number;
  readonly maxBytes: number;
}

/** An index that is open. */
export interface OpenIndex {
  /** Memory. */
  readonly bytes: number;
  close(): void;
}

/** How the indexes of a cache are stored. */
export interface IndexFiles<Index> {
  /** Endings of the names of an index's files; the first one is that of the index itself, which can be built again. */
  readonly endings: readonly [string, ...string[]];
  /** @param paths of its files, in the order of the endings */
  open(paths: readonly [string, ...string[]]): Index;
}

/** The open indexes of one thread. Those that were not used for longest are closed when there are too many. */
export class IndexCache<Index extends OpenIndex> {
  readonly #options: IndexCacheOptions;
  readonly #type: IndexFiles<Index>;
  /** Least recently used first. */
  readonly #open = new Map<string, { readonly index: Index; usedMs: number; bytes: number }>();

  constructor(options: IndexCacheOptions, type: IndexFiles<Index>) {
    this.#options = options;
    this.#type = type;
  }

  /** @param id the id of an entity: letters, digits, `-` and `_`. Errors: those of SQLite */
  use<T>(id: string, work: (index: Index) => T): T {
    const open = this.#open.get(id) ?? { index: this.#openOne(id), usedMs: 0, bytes: 0 };
    this.#open.delete(id);
    this.#open.set(id, open);
    open.usedMs = performance.now();
    const result = work(open.index);
    open.bytes = open.index.bytes;
    this.#closeBeyondLimits();
    return result;
  }

  /** Whether there is an index, open or not. */
  has(id: string): boolean {
    return this.#open.has(id) || existsSync(this.#pathOf(id));
  }

  get measures(): { readonly count: number; readonly bytes: number } {
    return { count: this.#open.size, bytes: this.#bytes() };
  }

  /** Closes the index and deletes its first file, which is built again. */
  delete(id: string): void {
    this.#closeOne(id);
    deleteIndexFile(this.#pathOf(id));
  }

  /** Closes the index and deletes all its files. */
  remove(id: string): void {
    this.#closeOne(id);
    for (const name of this.#files()) if (name.startsWith(`${id}.`)) this.#removeFile(name);
  }

  closeIdle(): void {
    const since = performance.now() - IDLE_MS;
    for (const [id, { usedMs }] of this.#open) if (usedMs < since) this.#closeOne(id);
    for (const id of this.#open.keys()) this.#markUsed(id);
  }

  /**
   * Deletes files that no process has used for 30 days: of entities that were deleted elsewhere, or are not asked any more.
   * The time of a file is that of its last use.
   */
  removeUnused(nowMs: number): void {
    for (const name of this.#files()) {
      const [id = ''] = name.split('.');
      const usedMs = statSync(join(this.#options.folder, name), { throwIfNoEntry: false })?.mtimeMs ?? nowMs;
      if (usedMs < nowMs - UNUSED_MS && !this.#open.has(id)) this.#removeFile(name);
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
    for (const id of this.#open.keys()) this.#closeOne(id);
  }

  #openOne(id: string): Index {
    // It holds what organizations know. A cleaner of temporary folders may have removed it.
    mkdirSync(this.#options.folder, { recursive: true, mode: 0o700 });
    const index = this.#type.open(this.#pathsOf(id));
    this.#markUsed(id);
    return index;
  }

  /** Reading a file does not change its time. */
  #markUsed(id: string): void {
    const now = new Date();
    for (const path of this.#pathsOf(id)) if (existsSync(path)) utimesSync(path, now, now);
  }

  #closeBeyondLimits(): void {
    const { maxOpen, maxBytes } = this.#options;
    for (const id of [...this.#open.keys()].slice(0, -1)) {
      if (this.#open.size <= maxOpen && this.#bytes() <= maxBytes) return;
      this.#closeOne(id);
    }
  }

  #closeOne(id: string): void {
    this.#open.get(id)?.index.close();
    this.#open.delete(id);
  }

  #bytes(): number {
    return [...this.#open.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #pathOf(id: string): string {
    return this.#pathsOf(id)[0];
  }

  #pathsOf(id: string): [string, ...string[]] {
    const [first, ...others] = this.#type.endings;
    const pathOf = (ending: string) => join(this.#options.folder, `${id}.${ending}`);
    return [pathOf(first), ...others.map(pathOf)];
  }
}
