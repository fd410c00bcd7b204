/*
 * Where an import has come to, in a small file. It only saves time: what it does not know of is found in the
 * log when it is posted again.
 */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

import { derivedId } from '#libs/kernel/ids.ts';
import { makeFolder } from '#libs/platform/files/index.ts';

import type { ImportProgress } from './run-import.ts';

const count = z.int().nonnegative();
const saved = z.object({
  fingerprint: z.string(),
  mark: count,
  counts: z.object({ channels: count, imported: count, already: count, bad: count, skipped: count }),
});

const NAMESPACE = '6a0c9f0e-0d3b-5c55-8f0c-2b1c9d3f6e11';

export class ProgressFile {
  readonly #folder: string;
  readonly #path: string;
  readonly #fingerprint: string;

  /** @param identity of the import: the source, the organization and the stores that it goes to */
  constructor(dataDir: string, identity: readonly string[], fingerprint: string) {
    this.#folder = join(dataDir, 'imports');
    this.#path = join(this.#folder, `${derivedId(NAMESPACE, identity.join('\n'))}.json`);
    this.#fingerprint = fingerprint;
  }

  /** Null if there is none, it is broken, or the source has changed since. */
  async read(): Promise<ImportProgress | null> {
    try {
      const { fingerprint, mark, counts } = saved.parse(JSON.parse(await readFile(this.#path, 'utf8')));
      return fingerprint === this.#fingerprint ? { mark, counts } : null;
    } catch {
      return null;
    }
  }

  /** Whole or not at all. */
  async save({ mark, counts }: ImportProgress): Promise<void> {
    makeFolder(this.#folder);
    const next = `${this.#path}.next`;
    await writeFile(next, `${JSON.stringify({ fingerprint: this.#fingerprint, mark, counts })}\n`);
    await rename(next, this.#path);
  }

  /** The import is done: the next one of the same source looks at all of it again. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}
