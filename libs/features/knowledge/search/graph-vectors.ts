import { EDGE, NODE } from './columns.ts';
import type { Columns, Point } from './columns.ts';
import { embeddedText } from './embedded-text.ts';
import type { FactText } from './embedded-text.ts';
import { deleteIndexFile, isUnusable, parseRow } from './index-file.ts';
import type { IndexFile } from './index-file.ts';
import type { Rankings } from './ranking.ts';
import { VectorFile } from './vector-file.ts';
import { Vectors } from './vectors.ts';

/** A text that has no vector yet. */
export interface MissingVector {
  /** Its key, in hexadecimal. */
  readonly key: string;
  readonly text: string;
}

/** The index in a transaction. */
interface IndexRead {
  readonly file: IndexFile;
  readonly columns: Columns;
}

/** The vectors of one graph. Opens their file when they are first needed, and starts again with one that is damaged. */
export class GraphVectors {
  readonly #path: string;
  #file: VectorFile | null = null;
  #vectors = new Vectors();

  constructor(path: string) {
    this.#path = path;
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
    if (this.#vectors.isEmpty || !this.#vectors.fits(vector)) return null;
    return this.#vectors.nearest(vector, { columns: index.columns, point, minSimilarity });
  }

  /** Errors: those of the index, and `VectorsUnavailable`. */
  missing(index: IndexRead, limit: number): readonly MissingVector[] {
    this.#load(index);
    const { file, columns } = index;
    return this.#vectors.missing({ columns, limit }).map(({ text, row }) => ({ key: text, text: textOf(file, row) }));
  }

  /** @param vectors null for texts that the endpoint refuses @throws VectorsUnavailable, also for other dimensions */
  add(index: IndexRead, vectors: readonly (readonly [key: string, vector: Float32Array | null])[]): void {
    const file = this.#load(index);
    const other = vectors.find(([, vector]) => vector !== null && !this.#vectors.fits(vector));
    if (other !== undefined) {
      throw new VectorsUnavailable(`the file has vectors of another length than ${other[1]?.length}: ${this.#path}`);
    }
    try {
      file.add(vectors);
    } catch (error) {
      throw new VectorsUnavailable('vectors cannot be written', { cause: error });
    }
  }

  close(): void {
    this.#file?.close();
    this.#file = null;
  }

  #load({ file: index, columns }: IndexRead, isAgain = false): VectorFile {
    this.#vectors.readRows(index, columns.rows);
    try {
      this.#file ??= new VectorFile(this.#path);
      this.#vectors.load(this.#file);
      return this.#file;
    } catch (error) {
      this.close();
      this.#vectors = new Vectors();
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
