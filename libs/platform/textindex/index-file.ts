/*
 * The file of one index. It follows from the log alone, so a file that is damaged, or was written by another version, is
 * deleted and built again. Several processes may share it.
 */
import { rmSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';

const PAGE_BYTES = 8_192;
/** Pages of a file in memory. */
const MAX_CACHE_BYTES = 16 * 1024 * 1024;

/** How long a process waits for another one that writes to the file. */
const BUSY_MS = 5_000;

/**
 * What an index stores besides words. `version` covers the tables, the words that texts consist of, and how they become
 * rows: a file of another version is built again.
 */
export interface IndexLayout {
  readonly version: number;
  /** Statements of SQL that create the tables. */
  readonly tables: string;
}

/*
 * `posting`: where a term occurs: see `postings.ts`. Terms and blocks are named by the row that they first occur in.
 * `sum` is the checksum of `data`.
 */
const WORDS = `
  create table term (
    id integer primary key, term text not null unique, reversed text not null, stem text not null, first integer not null
  );
  create index term_reversed on term (reversed);
  create index term_stem on term (stem);
  create table posting (
    term integer, first integer, last integer not null, data blob not null, sum integer not null, primary key (term, first)
  ) without rowid;
`;

export type Row = readonly SQLOutputValue[];

/** Opens the file, or creates it. Errors: those of SQLite. */
export class IndexFile {
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, layout: IndexLayout) {
    this.path = path;
    this.#database = new DatabaseSync(path, { timeout: BUSY_MS, enableForeignKeyConstraints: false });
    try {
      // Without `fsync` for each transaction: what a power failure takes is applied again.
      this.#database.exec(`pragma page_size = ${PAGE_BYTES}; pragma journal_mode = wal; pragma synchronous = normal`);
      this.#database.exec(`pragma cache_size = -${MAX_CACHE_BYTES / 1_024}; pragma wal_autocheckpoint = 2000`);
      this.#create(layout);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  #create({ version, tables }: IndexLayout): void {
    if (this.#version() === version) return;
    this.write(() => {
      if (this.#version() === version) return;
      if (this.#version() !== 0 || this.row('select 1 from sqlite_schema limit 1') !== undefined)
        throw new OtherVersion();
      this.#database.exec(`${tables} ${WORDS} pragma user_version = ${version};`);
    });
  }

  #version(): unknown {
    return this.row('pragma user_version')?.[0];
  }

  /** Memory that SQLite may use for pages of the file. */
  get cacheBytes(): number {
    const [pages] = this.row('pragma page_count') ?? [];
    return Math.min(MAX_CACHE_BYTES, Number(pages) * PAGE_BYTES);
  }

  row(sql: string, ...values: (string | number | null)[]): Row | undefined {
    return this.#prepared(sql).get(...values) as Row | undefined;
  }

  rows(sql: string, ...values: (string | number | null)[]): Iterable<Row> {
    return this.#prepared(sql).iterate(...values) as unknown as Iterable<Row>;
  }

  /** @returns the key of the inserted row */
  run(sql: string, ...values: (string | number | null | Uint8Array)[]): number {
    return Number(this.#prepared(sql).run(...values).lastInsertRowid);
  }

  /** All reads of `work` see the same state of the file. */
  read<T>(work: () => T): T {
    return this.#transaction('begin', work);
  }

  /** No other process writes meanwhile; nothing is written if `work` throws. */
  write<T>(work: () => T): T {
    return this.#transaction('begin immediate', work);
  }

  close(): void {
    this.#database.close();
  }

  #transaction<T>(begin: string, work: () => T): T {
    this.#database.exec(begin);
    try {
      const result = work();
      this.#database.exec('commit');
      return result;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('rollback');
      throw error;
    }
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

class OtherVersion extends Error {
  override readonly name = 'OtherVersion';
}

/** Results of SQLite about what the file holds: missing tables, corruption, broken constraints, no database. */
const ABOUT_CONTENT = new Set([1, 11, 19, 20, 26]);

/** A row of a file that is intact to SQLite, whose value is not what was written. */
export class UnreadableRow extends Error {
  override readonly name = 'UnreadableRow';
}

/** @throws UnreadableRow for what is not an object */
export function parseRow(json: unknown): object {
  try {
    const value: unknown = JSON.parse(String(json));
    if (typeof value === 'object' && value !== null) return value;
  } catch (error) {
    throw new UnreadableRow('a row is not JSON', { cause: error });
  }
  throw new UnreadableRow('a row is not an object');
}

/** Whether the file has to be built again. */
export function isUnusable(error: unknown): boolean {
  if (error instanceof OtherVersion || error instanceof UnreadableRow) return true;
  const code: unknown = error instanceof Error ? Reflect.get(error, 'errcode') : undefined;
  // The lower byte is the primary result; the rest of an extended one gives details.
  return typeof code === 'number' && ABOUT_CONTENT.has(code & 0xff);
}

/** A process that has the file open keeps its own copy, which stays correct. */
export function deleteIndexFile(path: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
}
