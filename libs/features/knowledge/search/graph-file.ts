import { IndexFile } from '#libs/platform/textindex/index.ts';

/** Of the tables, of the words that texts consist of, and of how events become rows. */
const VERSION = 6;

/*
 * - `fact`: each time that a source stated a node or an edge, in the order of the stream. Rows are never removed: a fact
 *   is visible at revisions from `learnt` to the one before `withdrawn`. `text` is the key of what it is embedded
 *   by, `named` that of a node's name.
 * - `item`: the nodes (kind 0) and edges (kind 1). `slot` names the source node and relation of a single-valued edge,
 *   `start` is its place among the edges of the slot.
 * - `ending`: from `revision` on, the edge is known to be true until `at` (null: without an end).
 * - `described`: what the graph is called from `revision` on.
 * Times are in Unix milliseconds.
 */
const TABLES = `
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
`;

/** The file of one graph's index, which follows from the graph's stream alone. Errors: those of SQLite. */
export function openGraphFile(path: string): IndexFile {
  return new IndexFile(path, { version: VERSION, tables: TABLES });
}
