/*
 * Saves the progress of an import in a small file. It only saves time: messages after its checkpoint that were
 * imported already are found in the log when they are posted again.
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
  checkpoint: count,
  counts: z.object({ channels: count, imported: count, already: count, bad: count, skipped: count }),
});

const NAMESPACE = '6a0c9f0e-0d3b-5c55-8f0c-2b1c9d3f6e11';

export class ProgressFile {
  readonly #folder: string;
  readonly #path: string;
  readonly #fingerprint: string;

  /** @param identity of the import: source, organization and event store */
  constructor(dataDir: string, identity: readonly string[], fingerprint: string) {
    this.#folder = join(dataDir, 'imports');
    this.#path = join(this.#folder, `${derivedId(NAMESPACE, identity.join('\n'))}.json`);
    this.#fingerprint = fingerprint;
  }

  /** Null if the file is missing or damaged, or the source has changed. */
  async read(): Promise<ImportProgress | null> {
    try {
      const { fingerprint, checkpoint, counts } = saved.parse(JSON.parse(await readFile(this.#path, 'utf8')));
      return fingerprint === this.#fingerprint ? { checkpoint, counts } : null;
    } catch {
      return null;
    }
  }

  /** Replaces the file atomically. */
  async save({ checkpoint, counts }: ImportProgress): Promise<void> {
    makeFolder(this.#folder);
    const next = `${this.#path}.next`;
    await writeFile(next, `${JSON.stringify({ fingerprint: this.#fingerprint, checkpoint, counts })}\n`);
    await rename(next, this.#path);
  }

  /** For a finished import: the next import of the same source starts from its beginning. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}
