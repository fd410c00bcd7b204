import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';

import { derivedId } from '#libs/kernel/ids.ts';
import { makeFolder, replaceFile } from '#libs/platform/files/index.ts';

import type { ImportProgress } from './run-import.ts';

const count = z.int().nonnegative();
const saved = z.object({
  fingerprint: z.string(),
  checkpoint: count,
  counts: z.object({ channels: count, imported: count, already: count, bad: count, skipped: count }),
});

const NAMESPACE = '6a0c9f0e-0d3b-5c55-8f0c-2b1c9d3f6e11';
const SAVE_EVERY_MS = 500;

/**
 * Saves the progress of an import in a small file. It only saves time: messages after its checkpoint that were imported
 * already are found in the log when they are posted again.
 */
export class ProgressFile {
  readonly #path: string;
  readonly #fingerprint: string;
  #latest: ImportProgress | null = null;
  #savedAtMs = 0;
  #saving: Promise<void> = Promise.resolve();

  /** @param identity of the import: source, organization and event store */
  constructor(dataDir: string, identity: readonly string[], fingerprint: string) {
    this.#path = join(dataDir, 'imports', `${derivedId(NAMESPACE, identity.join('\n'))}.json`);
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

  /** Saves the progress, at intervals. A file that cannot be written only costs the next run time. */
  note(progress: ImportProgress): void {
    this.#latest = progress;
    if (performance.now() - this.#savedAtMs < SAVE_EVERY_MS) return;
    this.#savedAtMs = performance.now();
    void this.flush();
  }

  flush(): Promise<void> {
    const latest = this.#latest;
    this.#latest = null;
    if (latest !== null) this.#saving = this.#saving.then(() => this.save(latest)).catch(() => undefined);
    return this.#saving;
  }

  async save({ checkpoint, counts }: ImportProgress): Promise<void> {
    makeFolder(dirname(this.#path));
    await replaceFile(this.#path, `${JSON.stringify({ fingerprint: this.#fingerprint, checkpoint, counts })}\n`);
  }

  /** For a finished import: the next import of the same source starts from its beginning. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}
