/** Reads nodes and edges as search answers them. */
import { type IndexFile, parseRow, UnreadableRow } from '#libs/platform/textindex/index.ts';

import { type Columns, EDGE, type Point } from './columns.ts';
import type { FoundEdge, FoundNode, FoundSource, PastGraph } from './graph-questions.ts';

/** Facts that a result is made of, the newest ones; and documents that it names. */
const MAX_FACTS = 10;
const MAX_SOURCES = 5;
/** Of a `Date`. */
const MAX_TIME_MS = 8.64e15;

/** The names of a graph. */
export type GraphDescription = Pick<PastGraph, 'name' | 'description'>;

/** Before the first event, the name is empty. */
export function descriptionAt(file: IndexFile, revision: number): GraphDescription {
  const sql = 'select name, description from described where revision <= ? order by revision desc limit 1';
  const [name = '', description = null] = file.row(sql, revision) ?? [];
  return { name: String(name), description: description === null ? null : String(description) };
}

interface StatedFact {
  readonly row: number;
  readonly json: string;
  readonly source: FoundSource | null;
}

/** A member of a row. Not by zod: loading it takes a thread as long as all the rest of its code. @throws UnreadableRow */
function textIn(row: object, name: string): string {
  const value: unknown = Reflect.get(row, name);
  if (typeof value !== 'string') throw new UnreadableRow(`a row is not the content of a fact: ${name} is not a text`);
  return value;
}

/** As {@link textIn}. */
function textOrNullIn(row: object, name: string): string | null {
  return Reflect.get(row, name) === null ? null : textIn(row, name);
}

/** As {@link textIn}. */
function nodeContent(json: string) {
  const row = parseRow(json);
  const labels: unknown = Reflect.get(row, 'labels');
  if (!Array.isArray(labels) || !labels.every((label) => typeof label === 'string'))
    throw new UnreadableRow('a row is not the content of a fact: labels are not texts');
  return { name: textIn(row, 'name'), summary: textOrNullIn(row, 'summary'), labels };
}

/** As {@link textIn}. */
function edgeContent(json: string) {
  const row = parseRow(json);
  return {
    name: textOrNullIn(row, 'name'),
    fact: textIn(row, 'fact'),
    source: textIn(row, 'source'),
    target: textIn(row, 'target'),
    validAt: textOrNullIn(row, 'validAt'),
  };
}

/** Null for an item that is not present at the point. @param bestRow the fact whose source comes first; -1 for none */
export function readNode(index: Index, item: number, bestRow: number): FoundNode | null {
  const facts = factsOf(index, item, bestRow);
  const contents = facts.map(({ json }) => nodeContent(json));
  const [newest] = contents;
  if (newest === undefined) return null;
  return {
    uuid: uuidOf(index, item),
    name: newest.name,
    summary: contents.find(({ summary }) => summary !== null)?.summary ?? null,
    labels: [...new Set(contents.flatMap(({ labels }) => labels))],
    created_at: isoTime(index.columns.createdMs(item)),
    sources: sourcesOf(facts, bestRow),
  };
}

/** As {@link readNode}. */
export function readEdge(index: Index, item: number, bestRow: number): FoundEdge | null {
  const facts = factsOf(index, item, bestRow);
  const [newest] = facts.map(({ json }) => edgeContent(json));
  if (newest === undefined) return null;
  const endMs = index.columns.endMs(item, index.point.revision);
  return {
    uuid: uuidOf(index, item),
    fact: newest.fact,
    source_node_uuid: newest.source,
    target_node_uuid: newest.target,
    name: newest.name,
    created_at: isoTime(index.columns.createdMs(item)),
    valid_at: newest.validAt,
    invalid_at: endMs === Infinity ? null : isoTime(endMs),
    sources: sourcesOf(facts, bestRow),
  };
}

/** An index at a point. */
export interface Index {
  readonly file: IndexFile;
  readonly columns: Columns;
  readonly point: Point;
}

/** The node or edge with an id; null without one that is present. */
export function readById(index: Index, uuid: string): FoundNode | FoundEdge | null {
  const [item, kind] = index.file.row('select item, kind from item where uuid = ?', uuid) ?? [];
  if (item === undefined) return null;
  return kind === EDGE ? readEdge(index, Number(item), -1) : readNode(index, Number(item), -1);
}

/** Facts that state the item at the point, the newest first, and the best one even if it is old. */
function factsOf({ file, columns, point }: Index, item: number, bestRow: number): StatedFact[] {
  const lastRow = columns.lastRowAt(point.revision);
  const chosen: number[] = [];
  for (const [key] of file.rows('select row from fact where item = ? and row <= ? order by row desc', item, lastRow)) {
    const row = Number(key);
    if (columns.isPresent(row, point.revision)) chosen.push(row);
    if (chosen.length === MAX_FACTS) break;
  }
  if (bestRow !== -1 && !chosen.includes(bestRow)) chosen.push(bestRow);
  return chosen.map((row) => readFact(file, row));
}

function readFact(file: IndexFile, row: number): StatedFact {
  const [json, id, name, url, passage] =
    file.row(
      `select json, document.id, origin.name, origin.url, passage.text from fact join content using (row)
         left join origin using (origin) left join document on document.document = fact.document
         left join passage using (passage)
       where row = ?`,
      row,
    ) ?? [];
  return { row, json: String(json), source: id === null ? null : sourceOf(id, name, url, passage) };
}

function sourceOf(id: unknown, name: unknown, url: unknown, passage: unknown): FoundSource {
  return { document_id: String(id), name: String(name), url: textOrNull(url), passage: textOrNull(passage) };
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

/** Keeps the best fact of each document, the best document first. */
function sourcesOf(facts: readonly StatedFact[], bestRow: number): FoundSource[] {
  const sources = new Map<string, FoundSource>();
  for (const { source } of [...facts.filter(({ row }) => row === bestRow), ...facts]) {
    if (source !== null && !sources.has(source.document_id)) sources.set(source.document_id, source);
  }
  return [...sources.values()].slice(0, MAX_SOURCES);
}

function uuidOf({ file }: Index, item: number): string {
  return String(file.row('select uuid from item where item = ?', item)?.[0]);
}

export function isoTime(ms: number): string {
  if (!(Math.abs(ms) <= MAX_TIME_MS)) throw new UnreadableRow(`${ms} is not a time`);
  return new Date(ms).toISOString();
}
