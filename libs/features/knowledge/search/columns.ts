import { enlarged, type IndexFile } from '#libs/platform/textindex/index.ts';

/*
 * What a query needs of every fact, in memory: about 40 bytes for each. A cache of the file, which is brought up to date
 * by reading what has changed since its revision, whichever process wrote it.
 */

export const NODE = 0;
export const EDGE = 1;
export type Kind = typeof NODE | typeof EDGE;

const NEVER = 0x7fff_ffff;

/** The state of a graph at a revision, and the time at which its edges must be true. */
export interface Point {
  readonly revision: number;
  readonly timeMs: number;
}

interface Ending {
  readonly revision: number;
  readonly atMs: number;
}

export class Columns {
  /** The last event that is part of the index; -1 for none. */
  revision = -1;
  /** Its id. */
  event = '';
  rows = 0;
  items = 0;
  /** Greater than the keys of all documents. */
  documents = 0;
  /** By row. */
  item = new Int32Array();
  document = new Int32Array();
  /** Words of the name; and of the rest of the text. */
  nameWords = new Uint16Array();
  words = new Uint16Array();
  #learnt = new Int32Array();
  #withdrawn = new Int32Array();
  /** By item. */
  kind = new Uint8Array();
  /** The first 52 bits of the id, by which equals are ordered. */
  order = new Float64Array();
  #itemLearnt = new Int32Array();
  #validAt = new Float64Array();
  readonly #endings = new Map<number, Ending[]>();
  /** Times of events, by revision. */
  #times = new Float64Array();

  /** Call it in a transaction, so that later reads in it see the same state. */
  refresh(file: IndexFile): void {
    const [revision, event] = file.row('select revision, event from progress') ?? [];
    if (revision === this.revision) return;
    const since = this.revision;
    this.#readItems(file);
    this.#readRows(file);
    for (const [row, withdrawn] of file.rows('select row, withdrawn from fact where withdrawn > ?', since)) {
      this.#withdrawn[Number(row)] = Number(withdrawn);
    }
    const endings = file.rows('select item, revision, at from ending where revision > ? order by revision', since);
    for (const [item, from, at] of endings) {
      const ending = { revision: Number(from), atMs: at === null ? Infinity : Number(at) };
      const known = this.#endings.get(Number(item));
      if (known === undefined) this.#endings.set(Number(item), [ending]);
      else known.push(ending);
    }
    this.#times = enlarged(this.#times, Number(revision) + 1);
    for (const [at, time] of file.rows('select revision, at from event where revision > ?', since)) {
      this.#times[Number(at)] = Number(time);
    }
    this.revision = Number(revision);
    this.event = String(event);
  }

  #readItems(file: IndexFile): void {
    const sql = 'select item, uuid, kind, learnt, valid_at from item where item >= ? order by item';
    for (const [key, uuid, kind, learnt, validAt] of file.rows(sql, this.items)) {
      const item = Number(key);
      this.items = item + 1;
      this.kind = enlarged(this.kind, this.items);
      this.order = enlarged(this.order, this.items);
      this.#itemLearnt = enlarged(this.#itemLearnt, this.items);
      this.#validAt = enlarged(this.#validAt, this.items);
      this.kind[item] = Number(kind);
      this.order[item] = orderOf(String(uuid));
      this.#itemLearnt[item] = Number(learnt);
      this.#validAt[item] = validAt === null ? -Infinity : Number(validAt);
    }
  }

  #readRows(file: IndexFile): void {
    const sql =
      'select row, item, document, learnt, withdrawn, name_words, words from fact where row >= ? order by row';
    for (const [key, item, document, learnt, withdrawn, nameWords, words] of file.rows(sql, this.rows)) {
      const row = Number(key);
      this.rows = row + 1;
      this.item = enlarged(this.item, this.rows);
      this.document = enlarged(this.document, this.rows);
      this.nameWords = enlarged(this.nameWords, this.rows);
      this.words = enlarged(this.words, this.rows);
      this.#learnt = enlarged(this.#learnt, this.rows);
      this.#withdrawn = enlarged(this.#withdrawn, this.rows);
      this.item[row] = Number(item);
      this.document[row] = document === null ? -1 : Number(document);
      this.documents = Math.max(this.documents, (this.document[row] ?? -1) + 1);
      this.nameWords[row] = Number(nameWords);
      this.words[row] = Number(words);
      this.#learnt[row] = Number(learnt);
      this.#withdrawn[row] = withdrawn === null ? NEVER : Number(withdrawn);
    }
  }

  get bytes(): number {
    const columns = [this.item, this.document, this.nameWords, this.words, this.#learnt, this.#withdrawn, this.kind];
    const lengths = [...columns, this.order, this.#itemLearnt, this.#validAt, this.#times].map(
      ({ byteLength }) => byteLength,
    );
    return lengths.reduce((sum, length) => sum + length, this.#endings.size * 200);
  }

  /** The last row that was learnt by a revision; -1 for none. Rows are in the order of their revisions. */
  lastRowAt(revision: number): number {
    return countUpTo(this.#learnt, this.rows, revision) - 1;
  }

  /** The last event up to a time, as times in a stream do not go back; -1 for none. */
  revisionAt(timeMs: number): number {
    return countUpTo(this.#times, this.revision + 1, timeMs) - 1;
  }

  /** When the event of a revision happened. */
  timeOf(revision: number): number {
    return this.#times[revision] ?? Number.NaN;
  }

  /** When the item was first learnt. */
  createdMs(item: number): number {
    return this.timeOf(this.#itemLearnt[item] ?? 0);
  }

  kindOf(item: number): Kind {
    return this.kind[item] === EDGE ? EDGE : NODE;
  }

  /** Whether a row up to {@link lastRowAt} has not been withdrawn by then. */
  isPresent(row: number, revision: number): boolean {
    return (this.#withdrawn[row] ?? 0) > revision;
  }

  /** Whether the item is true, as the graph knew it at the revision; nodes always are. */
  isTrue(item: number, { revision, timeMs }: Point): boolean {
    return (this.#validAt[item] ?? 0) <= timeMs && this.endMs(item, revision) > timeMs;
  }

  /** Until when the item is true, as the graph knew it at the revision; `Infinity` for no end. */
  endMs(item: number, revision: number): number {
    return this.#endings.get(item)?.findLast((ending) => ending.revision <= revision)?.atMs ?? Infinity;
  }
}

function orderOf(uuid: string): number {
  const order = Number.parseInt(uuid.replaceAll('-', '').slice(0, 13), 16);
  return Number.isNaN(order) ? 0 : order;
}

/** How many of the first `size` values are at most `limit`; they ascend. */
function countUpTo(values: Int32Array | Float64Array, size: number, limit: number): number {
  let [low, high] = [0, size];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
