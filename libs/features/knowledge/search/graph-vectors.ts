import { deleteIndexFile, type IndexFile, isUnusable, parseRow } from '#libs/platform/textindex/index.ts';

import { type Columns, EDGE, NODE, type Point } from './columns.ts';
import { embeddedText, type FactText } from './embedded-text.ts';
import type { Rankings } from './ranking.ts';
import { VectorFile } from './vector-file.ts';
import { VectorMemory } from './vector-memory.ts';

export interface VectorsOptions {
  /** Names the model: vectors of another one are in other files. */
  readonly key: string;
  readonly minSimilarity: number;
  /** Of the vectors of one graph in memory; texts beyond it are found by words alone. */
  readonly maxBytes: number;
}

/** A text that has no vector yet. */
export interface MissingVector {
  /** Its key, in hexadecimal. */
  readonly key: string;
  readonly text: string;
}

/**
 * Vectors of another length in a row after which those of the graph count as wrong: an endpoint that was not the right one
 * at first must not decide for ever, and one that is wrong for a moment must not cost all vectors.
 */
const MAX_MISFITS = 3;

/** The index in a transaction. */
interface IndexRead {
  readonly file: IndexFile;
  readonly columns: Columns;
}

/** The vectors of one graph. Opens their file when they are first needed, and starts again with one that is damaged. */
export class GraphVectors {
  readonly #path: string;
  readonly #maxBytes: number;
  #file: VectorFile | null = null;
  #vectors: VectorMemory;
  /** Vectors in a row that do not have the length of the graph's. */
  #misfits = 0;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#vectors = new VectorMemory(maxBytes);
  }

  get bytes(): number {
    return this.#vectors.bytes;
  }

  /** Null without vectors to compare with, also because their file cannot be read. Errors: those of the index. */
  nearest(
    index: IndexRead,
    point: Point,
    { vector, minSimilarity }: { readonly vector: Float32Array; readonly minSimilarity: number },
  ): Rankings | null {
    try {
      this.#load(index);
    } catch (error) {
      if (error instanceof VectorsUnavailable) return null;
      throw error;
    }
    if (this.#refuses(vector) || this.#vectors.isEmpty) return null;
    return this.#vectors.nearest(vector, { columns: index.columns, point, minSimilarity });
  }

  /** Errors: those of the index, and `VectorsUnavailable`. */
  missing(index: IndexRead, limit: number): readonly MissingVector[] {
    this.#load(index);
    const { file, columns } = index;
    return this.#vectors.missing({ columns, limit }).map(({ text, row }) => ({ key: text, text: textOf(file, row) }));
  }

  /**
   * @param vectors of one length; null for texts that the endpoint refuses
   * @throws VectorsUnavailable, also for another length than that of the graph's vectors
   */
  add(index: IndexRead, vectors: readonly (readonly [key: string, vector: Float32Array | null])[]): void {
    this.#load(index);
    const [, first] = vectors.find(([, vector]) => vector !== null) ?? [];
    if (first && this.#refuses(first)) {
      throw new VectorsUnavailable(`the file has vectors of another length than ${first.length}: ${this.#path}`);
    }
    try {
      (this.#file ?? this.#load(index)).add(vectors);
    } catch (error) {
      throw new VectorsUnavailable('vectors cannot be written', { cause: error });
    }
  }

  close(): void {
    this.#file?.close();
    this.#file = null;
  }

  /** Whether the graph has vectors of another length. If that occurs repeatedly, these are deleted, and it starts again. */
  #refuses(vector: Float32Array): boolean {
    this.#misfits = this.#vectors.fits(vector) ? 0 : this.#misfits + 1;
    if (this.#misfits < MAX_MISFITS) return this.#misfits > 0;
    this.#misfits = 0;
    this.close();
    this.#vectors = new VectorMemory(this.#maxBytes);
    deleteIndexFile(this.#path);
    return false;
  }

  #load({ file: index, columns }: IndexRead, isAgain = false): VectorFile {
    this.#vectors.readRows(index, columns.rows);
    try {
      this.#file ??= new VectorFile(this.#path);
      this.#vectors.load(this.#file);
      return this.#file;
    } catch (error) {
      this.close();
      this.#vectors = new VectorMemory(this.#maxBytes);
      if (isAgain || !isUnusable(error)) throw new VectorsUnavailable('vectors cannot be read', { cause: error });
      deleteIndexFile(this.#path);
      return this.#load({ file: index, columns }, true);
    }
  }
}

/** Says nothing about the index, which answers by words. */
class VectorsUnavailable extends Error {
  override readonly name = 'VectorsUnavailable';
}

function textOf(file: IndexFile, row: number): string {
  const sql = `select json, kind, passage.text from fact join content using (row) join item using (item)
    left join passage using (passage) where row = ?`;
  const [json, kind, passage = null] = file.row(sql, row) ?? [];
  const content = parseRow(json) as Omit<FactText, 'kind' | 'passage'>;
  return embeddedText({
    ...content,
    kind: kind === EDGE ? EDGE : NODE,
    passage: passage === null ? null : String(passage),
  });
}
