/*
 * The vectors of one graph's texts, in a file beside its index: they cost requests to an endpoint, so they stay when the
 * index is built again. A file that is damaged is deleted. Several processes may share it.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';

const BUSY_MS = 5_000;
/** A vector is its scale as a 32-bit float, and each of its numbers as a multiple of that from -127 to 127. */
const SCALE_BYTES = 4;

/*
 * `data` is empty for a text that the endpoint refuses. Rows are numbered in the order of their insertion, which is how
 * other processes find new ones.
 */
const SCHEMA = `
  create table if not exists vector (number integer primary key, text blob not null unique, data blob not null)
`;

export interface StoredVector {
  readonly number: number;
  /** Key of the text, in hexadecimal. */
  readonly text: string;
  /** Null for a text without a vector. */
  readonly vector: { readonly scale: number; readonly numbers: Int8Array } | null;
}

/** Errors of all methods: those of SQLite. */
export class VectorFile {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #since: StatementSync;
  readonly #ofText: StatementSync;

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { timeout: BUSY_MS });
    try {
      this.#database.exec('pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -1024');
      this.#database.exec(SCHEMA);
      this.#insert = this.#database.prepare('insert or ignore into vector (text, data) values (?, ?)');
      this.#since = this.#database.prepare('select number, text, data from vector where number > ? order by number');
      this.#ofText = this.#database.prepare('select number, text, data from vector where text = ?');
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** @param vectors of length 1, by the keys of their texts; null for a text that the endpoint refuses */
  add(vectors: readonly (readonly [text: string, vector: Float32Array | null])[]): void {
    this.#database.exec('begin immediate');
    try {
      for (const [text, vector] of vectors) {
        this.#insert.run(Buffer.from(text, 'hex'), vector === null ? new Uint8Array() : packed(vector));
      }
      this.#database.exec('commit');
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('rollback');
      throw error;
    }
  }

  *since(number: number): Iterable<StoredVector> {
    for (const row of this.#since.iterate(number)) yield storedVector(row);
  }

  ofText(text: string): StoredVector | null {
    const row = this.#ofText.get(Buffer.from(text, 'hex'));
    return row === undefined ? null : storedVector(row);
  }

  close(): void {
    this.#database.close();
  }
}

function storedVector({ number, text, data }: Record<string, unknown>): StoredVector {
  return {
    number: Number(number),
    text: Buffer.from(text as Uint8Array).toString('hex'),
    vector: unpacked(data as Uint8Array),
  };
}

/** Multiples of `scale` that are nearest to the numbers of a vector. */
export function quantized(vector: Float32Array, max: number): { readonly scale: number; readonly numbers: Int32Array } {
  let largest = 0;
  for (const value of vector) largest = Math.max(largest, Math.abs(value));
  const scale = largest === 0 ? 1 : largest / max;
  return { scale, numbers: Int32Array.from(vector, (value) => Math.round(value / scale)) };
}

function packed(vector: Float32Array): Uint8Array {
  const { scale, numbers } = quantized(vector, 127);
  const bytes = Buffer.alloc(SCALE_BYTES + numbers.length);
  bytes.writeFloatLE(scale);
  bytes.set(Int8Array.from(numbers), SCALE_BYTES);
  return bytes;
}

function unpacked(data: Uint8Array): StoredVector['vector'] {
  if (data.length <= SCALE_BYTES) return null;
  const scale = Buffer.from(data.buffer, data.byteOffset, data.length).readFloatLE();
  return { scale, numbers: new Int8Array(data.buffer, data.byteOffset + SCALE_BYTES, data.length - SCALE_BYTES) };
}
