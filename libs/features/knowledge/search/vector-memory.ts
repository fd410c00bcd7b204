/*
 * The vectors of a graph in memory: a cache of their file, and of the texts of the facts in the index. All are compared
 * with that of a query, one after the other, so memory and time have one limit.
 */
import type { IndexFile } from '#libs/platform/textindex/index.ts';

import { TopItems, type Ranked } from './top-items.ts';
import { type Columns, EDGE, type Point } from './columns.ts';
import type { Rankings } from './ranking.ts';
import { quantized, type StoredVector, type VectorFile } from './vector-file.ts';

/** Of nodes and edges each, for any limit, so that totals do not depend on it. */
export const NEAREST = 50;
/** Numbers of the query: with those of 8 bits, sums of 4,096 products fit into 31 bits. */
const MAX_QUERY_NUMBER = 2_047;

export class VectorMemory {
  readonly #maxBytes: number;
  /** Vectors in memory, by the keys of their texts; -1 for a text without one. */
  readonly #slots = new Map<string, number>();
  /** Rows of texts whose vectors are not in the file, in their order. */
  readonly #waiting = new Map<string, number[]>();
  /** Rows that the file has not been asked for. */
  readonly #added: string[] = [];
  #slotOfRow = new Int32Array();
  #numbers = new Int8Array();
  #scales = new Float32Array();
  #count = 0;
  #dimensions = 0;
  #rows = 0;
  #lastNumber = 0;

  /** @param maxBytes texts beyond it are found by words alone */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    // Beside the arrays, about 150 bytes for the key of a text and its places.
    const keys = 150 * (this.#slots.size + this.#waiting.size);
    return keys + this.#slotOfRow.byteLength + this.#numbers.byteLength + this.#scales.byteLength;
  }

  /** Reads the facts that have been added to the index. Call it in a transaction, before {@link load}. */
  readRows(index: IndexFile, count: number): void {
    if (this.#slotOfRow.length < count) {
      const larger = new Int32Array(Math.max(1_024, count, this.#slotOfRow.length * 2)).fill(-1);
      larger.set(this.#slotOfRow);
      this.#slotOfRow = larger;
    }
    for (const [key, text] of index.rows('select row, text from fact where row >= ? order by row', this.#rows)) {
      const row = Number(key);
      const name = Buffer.from(text as Uint8Array).toString('hex');
      const slot = this.#slots.get(name);
      const waiting = this.#waiting.get(name);
      if (slot !== undefined) this.#slotOfRow[row] = slot;
      else if (waiting !== undefined) waiting.push(row);
      else {
        this.#waiting.set(name, [row]);
        this.#added.push(name);
      }
    }
    this.#rows = count;
  }

  /** Reads the vectors of new facts, and those that have been added to the file. */
  load(file: VectorFile): void {
    const added = this.#added.splice(0);
    // The whole file follows at first.
    for (const text of this.#lastNumber === 0 ? [] : added) {
      const stored = file.ofText(text);
      if (stored !== null) this.#place(stored);
    }
    for (const stored of file.since(this.#lastNumber)) {
      this.#lastNumber = stored.number;
      this.#place(stored);
    }
  }

  /** Takes a vector into memory if a fact has its text and there is room. */
  #place({ text, vector }: StoredVector): void {
    const rows = this.#waiting.get(text);
    if (rows === undefined) return;
    // The length of the first vector holds.
    if (this.#dimensions === 0 && vector !== null) this.#dimensions = vector.numbers.length;
    const isUsable = vector !== null && vector.numbers.length === this.#dimensions;
    if (isUsable && this.#isFull) return;
    const slot = isUsable ? this.#add(vector) : -1;
    this.#waiting.delete(text);
    this.#slots.set(text, slot);
    for (const row of rows) this.#slotOfRow[row] = slot;
  }

  #add({ scale, numbers }: NonNullable<StoredVector['vector']>): number {
    const slot = this.#count++;
    if (this.#scales.length < this.#count) {
      const size = Math.max(256, Math.min(this.#scales.length * 2, Math.floor(this.#maxBytes / this.#dimensions)));
      const [larger, scales] = [new Int8Array(size * this.#dimensions), new Float32Array(size)];
      larger.set(this.#numbers);
      scales.set(this.#scales);
      [this.#numbers, this.#scales] = [larger, scales];
    }
    this.#numbers.set(numbers, slot * this.#dimensions);
    this.#scales[slot] = scale;
    return slot;
  }

  get #isFull(): boolean {
    return (this.#count + 1) * this.#dimensions > this.#maxBytes;
  }

  /** Whether a vector can be compared with those of the graph; any can while it has none. */
  fits(vector: Float32Array): boolean {
    return this.#dimensions === 0 || vector.length === this.#dimensions;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Texts without a vector that facts of the end of the index have, in the order of these facts, with one of their rows. */
  missing({ columns, limit }: { readonly columns: Columns; readonly limit: number }) {
    const missing: { readonly text: string; readonly row: number }[] = [];
    if (this.#isFull) return missing;
    for (const [text, rows] of this.#waiting) {
      const row = rows.find((one) => columns.isPresent(one, columns.revision));
      if (row !== undefined) missing.push({ text, row });
      if (missing.length === limit) break;
    }
    return missing;
  }

  /** The visible items whose texts are most like a query; those below `minSimilarity`, a cosine, do not count. */
  nearest(query: Float32Array, { columns, point, minSimilarity }: NearestOptions): Rankings {
    const best = new Map<number, Ranked>();
    const similarities = this.#similarities(query);
    const lastRow = Math.min(columns.lastRowAt(point.revision), this.#rows - 1);
    for (let row = 0; row <= lastRow; row++) {
      const slot = this.#slotOfRow[row] ?? -1;
      const score = slot === -1 ? -1 : (similarities[slot] ?? -1);
      if (score < minSimilarity || !columns.isPresent(row, point.revision)) continue;
      const item = columns.item[row] ?? 0;
      if (score > (best.get(item)?.score ?? -1)) best.set(item, { item, score, row });
    }
    const [nodes, edges] = [new TopItems(NEAREST, columns.order), new TopItems(NEAREST, columns.order)];
    for (const ranked of best.values()) {
      if (columns.kind[ranked.item] !== EDGE) nodes.add(ranked);
      else if (columns.isTrue(ranked.item, point)) edges.add(ranked);
    }
    return [nodes.ranking, edges.ranking];
  }

  /** By slot. Four sums at a time: as fast as the processor reads memory, within a factor of two. */
  #similarities(query: Float32Array): Float64Array {
    const { scale, numbers: given } = quantized(query, MAX_QUERY_NUMBER);
    const dimensions = this.#dimensions;
    const numbers = this.#numbers;
    const similarities = new Float64Array(this.#count);
    const whole = dimensions - (dimensions % 4);
    for (let slot = 0, at = 0; slot < this.#count; slot++) {
      let [one, two, three, four] = [0, 0, 0, 0];
      let k = 0;
      for (; k < whole; k += 4, at += 4) {
        one = (one + Math.imul(numbers[at]!, given[k]!)) | 0;
        two = (two + Math.imul(numbers[at + 1]!, given[k + 1]!)) | 0;
        three = (three + Math.imul(numbers[at + 2]!, given[k + 2]!)) | 0;
        four = (four + Math.imul(numbers[at + 3]!, given[k + 3]!)) | 0;
      }
      for (; k < dimensions; k++, at++) one = (one + Math.imul(numbers[at]!, given[k]!)) | 0;
      similarities[slot] = (one + two + three + four) * scale * (this.#scales[slot] ?? 0);
    }
    return similarities;
  }
}

interface NearestOptions {
  readonly columns: Columns;
  readonly point: Point;
  readonly minSimilarity: number;
}
