/*
 * The rows that a term occurs in, in blocks of the file. A block is a sequence of postings, each a row and a byte whose
 * meaning the index defines, such as how often the row has the term: the distance from the row before as a variable-length integer of 7-bit groups, lowest first, then that byte.
 */
import { crc32 } from 'node:zlib';
import { type IndexFile, type Row, UnreadableRow } from './index-file.ts';
import { reversed, stemOf } from './tokens.ts';

/** A block that reaches this size in bytes is followed by another one. It fits into a page of the file. */
const FULL_BLOCK = 1_000;

/** Postings of one term; rows ascend. */
interface Postings {
  readonly rows: readonly number[];
  readonly counts: readonly number[];
}

/** Appends postings to a term. Their rows are greater than those that it has. */
function appendPostings(file: IndexFile, term: number, { rows, counts }: Postings): void {
  const last = file.row('select first, last, data, sum from posting where term = ? order by first desc limit 1', term);
  let first = Number(last?.[0] ?? 0);
  let previous = Number(last?.[1] ?? 0);
  let stored = last === undefined ? null : intact(last[2], last[3]);
  let added: number[] = [];
  const save = (): void => {
    if (stored === null) return;
    const data = Buffer.concat([stored, Uint8Array.from(added)]);
    const sql = 'insert or replace into posting (term, first, last, data, sum) values (?, ?, ?, ?, ?)';
    file.run(sql, term, first, previous, data, crc32(data));
  };
  for (const [index, row] of rows.entries()) {
    if (stored === null || stored.length + added.length >= FULL_BLOCK) {
      save();
      stored = new Uint8Array();
      added = [];
      first = row;
      previous = row;
    }
    addNumber(added, row - previous);
    added.push(counts[index] ?? 0);
    previous = row;
  }
  save();
}

function addNumber(bytes: number[], value: number): void {
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}

/** Collects the words of new rows, and writes them into the file once for each word. */
export class TermWriter {
  readonly #file: IndexFile;
  readonly #words = new Map<string, { readonly rows: number[]; readonly counts: number[] }>();
  #rows: number;

  /** @param next the first row that the file does not have */
  constructor(file: IndexFile, next: number) {
    this.#file = file;
    this.#rows = next;
  }

  /** Rows are numbered from 0 without gaps. */
  nextRow(): number {
    return this.#rows++;
  }

  /** @param words packed counts by word */
  add(row: number, words: ReadonlyMap<string, number>): void {
    for (const [word, counts] of words) {
      const known = this.#words.get(word);
      if (known === undefined) this.#words.set(word, { rows: [row], counts: [counts] });
      else {
        known.rows.push(row);
        known.counts.push(counts);
      }
    }
  }

  flush(): void {
    for (const [word, postings] of this.#words) {
      const known = this.#file.row('select id from term where term = ?', word)?.[0];
      appendPostings(
        this.#file,
        known === undefined ? this.#insert(word, postings.rows[0] ?? 0) : Number(known),
        postings,
      );
    }
    this.#words.clear();
  }

  #insert(word: string, first: number): number {
    const sql = 'insert into term (term, reversed, stem, first) values (?, ?, ?, ?)';
    return this.#file.run(sql, word, reversed(word), stemOf(word), first);
  }
}

/** SQLite does not notice a changed byte in a blob, which would give other rows. @throws UnreadableRow */
function intact(data: Row[number] | undefined, sum: Row[number] | undefined): Uint8Array {
  if (data instanceof Uint8Array && crc32(data) === sum) return data;
  throw new UnreadableRow('a block of postings is not what was written');
}

/** Calls `visit` for each posting of a term up to a row. @returns their count @throws UnreadableRow */
export function visitPostings(
  file: IndexFile,
  { term, lastRow }: { readonly term: number; readonly lastRow: number },
  visit: (row: number, counts: number) => void,
): number {
  let postings = 0;
  const sql = 'select first, data, sum from posting where term = ? and first <= ?';
  for (const [first, data, sum] of file.rows(sql, term, lastRow)) {
    const bytes = intact(data, sum);
    let row = Number(first);
    let at = 0;
    while (at < bytes.length) {
      let factor = 1;
      let byte = bytes[at++] ?? 0;
      while (byte >= 128) {
        row += (byte - 128) * factor;
        factor *= 128;
        byte = bytes[at++] ?? 0;
      }
      row += byte * factor;
      if (row > lastRow) return postings;
      visit(row, bytes[at++] ?? 0);
      postings += 1;
    }
  }
  return postings;
}

/** BM25: how well a text matches a word, by how often the text has it and how rare it is. */

/** How soon further occurrences of a word count less, and how much less they count in long texts. */
const SATURATION = 2;
const LENGTH_WEIGHT = 0.5;

/** Inverse document frequency, greater than 0. @param having texts with the word, of `all` texts */
export function rarityOf(having: number, all: number): number {
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

/** Occurrences as they count in a text of mean length. @param relativeLength of the text, to the mean of all texts */
export function inMeanLength(occurrences: number, relativeLength: number): number {
  return occurrences / (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * relativeLength);
}

/** From 0 to `SATURATION + 1`. */
export function saturated(occurrences: number): number {
  return (occurrences * (SATURATION + 1)) / (occurrences + SATURATION);
}
