/*
 * The file of one graph's index. It follows from the graph's stream alone, so a file that is damaged, or was written by
 * another version, is deleted and built again. Several processes may share it.
 */
import { rmSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';

/** Of the tables, of the words that texts consist of, and of how events become rows. */
const VERSION = 6;

const PAGE_BYTES = 8_192;
/** Pages of a file in memory. */
const MAX_CACHE_BYTES = 16 * 1024 * 1024;

/** How long a process waits for another one that writes to the file. */
const BUSY_MS = 5_000;

/*
 * - `fact`: each time that a source stated a node or an edge, in the order of the stream. Rows are never removed: a fact
 *   is visible at revisions from `learnt` to the one before `withdrawn`. `text` is the key of what it is embedded
 *   by, `named` that of a node's name.
 * - `item`: the nodes (kind 0) and edges (kind 1). `slot` names the source node and relation of a single-valued edge,
 *   `start` is its place among the edges of the slot.
 * - `ending`: from `revision` on, the edge is known to be true until `at` (null: without an end).
 * - `described`: what the graph is called from `revision` on.
 * - `posting`: where a term occurs: see `postings.ts`. Terms and blocks are named by the row that they first occur in.
 *   `sum` is the checksum of `data`.
 * Times are in Unix milliseconds.
 */
const SCHEMA = `
  create table progress (revision integer not null, event text not null);
  insert into progress values (-1, '');
  create table event (revision integer primary key, at real not null);
  create table described (revision integer primary key, name text not null, description text);
  create table item (
    item integer primary key, uuid text not null unique, kind integer not null, learnt integer not null,
    valid_at real, ended real, slot text, target text, start real
  );
  create index item_slot on item (slot, start, item) where slot is not null;
  create table document (document integer primary key, id text not null unique, withdrawn_before integer not null);
  create table origin (origin integer primary key, document integer not null, revision integer not null, name text not null, url text);
  create table passage (passage integer primary key, text text not null);
  create table fact (
    row integer primary key, item integer not null, document integer, origin integer, passage integer,
    learnt integer not null, withdrawn integer, name_words integer not null, words integer not null, invalid_at real, text blob not null,
    named integer
  );
  create index fact_item on fact (item);
  create index fact_named on fact (named) where named is not null;
  create index fact_stated on fact (item, document) where withdrawn is null;
  create index fact_end on fact (item, invalid_at) where withdrawn is null and invalid_at is not null;
  create index fact_document on fact (document) where withdrawn is null;
  create index fact_withdrawn on fact (withdrawn) where withdrawn is not null;
  create table content (row integer primary key, json text not null);
  create table ending (item integer not null, revision integer not null, at real, primary key (item, revision)) without rowid;
  create index ending_revision on ending (revision);
  create table term (
    id integer primary key, term text not null unique, reversed text not null, stem text not null, first integer not null
  );
  create index term_reversed on term (reversed);
  create index term_stem on term (stem);
  create table posting (
    term integer, first integer, last integer not null, data blob not null, sum integer not null, primary key (term, first)
  ) without rowid;
  pragma user_version = ${VERSION};
`;

export type Row = readonly SQLOutputValue[];

/** Opens the file, or creates it. Errors: those of SQLite. */
export class IndexFile {
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.path = path;
    this.#database = new DatabaseSync(path, { timeout: BUSY_MS, enableForeignKeyConstraints: false });
    try {
      // Without `fsync` for each transaction: what a power failure takes is applied again.
      this.#database.exec(`pragma page_size = ${PAGE_BYTES}; pragma journal_mode = wal; pragma synchronous = normal`);
      this.#database.exec(`pragma cache_size = -${MAX_CACHE_BYTES / 1_024}; pragma wal_autocheckpoint = 2000`);
      this.#create();
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  #create(): void {
    if (this.#version() === VERSION) return;
    this.write(() => {
      if (this.#version() === VERSION) return;
      if (this.#version() !== 0 || this.row('select 1 from sqlite_schema limit 1') !== undefined)
        throw new OtherVersion();
      this.#database.exec(SCHEMA);
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
