import { BoundedPool, TaskError } from '#libs/platform/bounded/index.ts';

import {
  type Content,
  type Extraction,
  ExtractionError,
  type ExtractionFailure,
  type Page,
  type PageSource,
  type PageWithFacts,
  type PdfText,
} from './extraction.ts';

export interface ExtractionOptions {
  /** Whose content it is: organizations take turns. */
  readonly organizationId: string;
  /** From the start of the task: waiting for a process does not count. Default: 10,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const TIMEOUT_MS = 10_000;
const MEMORY_MIB = 384;
/** The rest is Node, and buffers outside of the heap: those of decoded streams of a PDF. */
const HEAP_MIB = 288;

/**
 * Reads pages and documents in processes whose memory and time are bounded (see `BoundedPool`), and which start when they
 * are first needed. A task that exceeds its limits fails with an ExtractionError.
 */
export class ExtractionPool {
  readonly #pool: BoundedPool<unknown, unknown>;
  readonly #memoryMib: number;

  constructor({ memoryMib = MEMORY_MIB }: { memoryMib?: number } = {}) {
    this.#memoryMib = memoryMib;
    this.#pool = new BoundedPool({
      script: new URL('./extract.process.ts', import.meta.url),
      // Each for another organization: one that has many pages leaves a processor to the others.
      processes: 2,
      // Parsers do not share a processor, so a task need not share its memory either.
      tasksAtOnce: 1,
      timeoutMs: TIMEOUT_MS,
      maxMemoryBytes: memoryMib * 1024 * 1024,
      maxHeapMib: HEAP_MIB,
      semiSpaceMib: 16,
    });
  }

  readPage(bytes: Uint8Array, source: PageSource, options: ExtractionOptions): Promise<Page> {
    return this.#run('readPage', [bytes, source], options);
  }

  /** As `readPage` and `extractFacts`, in one task: giving a task to a process takes longer than most of it. */
  readPageWithFacts(
    bytes: Uint8Array,
    source: PageSource,
    documentId: string,
    options: ExtractionOptions,
  ): Promise<PageWithFacts> {
    return this.#run('readPageWithFacts', [bytes, source, documentId], options);
  }

  readPdf(bytes: Uint8Array, options: ExtractionOptions): Promise<PdfText> {
    return this.#run('readPdf', [bytes], options);
  }

  extractFacts(content: Content, options: ExtractionOptions): Promise<Extraction> {
    return this.#run('extractFacts', [content], options);
  }

  /** Ends the processes; tasks under way fail with the reason `closed`. */
  async close(): Promise<void> {
    await this.#pool.close(new ExtractionError('closed', 'Parley is stopping'));
  }

  async #run<Result>(
    task: string,
    input: readonly unknown[],
    { organizationId: group, timeoutMs = TIMEOUT_MS, signal }: ExtractionOptions,
  ): Promise<Result> {
    try {
      return (await this.#pool.run({ task, input }, { group, timeoutMs, signal })) as Result;
    } catch (error) {
      if (error instanceof ExtractionError) throw error;
      if (signal?.aborted === true) throw new ExtractionError('cancelled', 'The reading was cancelled');
      throw error instanceof TaskError ? this.#failureOf(error, timeoutMs) : error;
    }
  }

  #failureOf({ kind, message, detail }: TaskError, timeoutMs: number): ExtractionError {
    switch (kind) {
      case 'refused':
        // Written by `extract.process.ts`.
        return new ExtractionError(detail as ExtractionFailure, message);
      case 'timeout':
        return new ExtractionError('timeout', `Reading it takes longer than ${timeoutMs / 1_000} s`);
      case 'memory':
      case 'died':
        return new ExtractionError('out_of_memory', `Reading it takes more than ${this.#memoryMib} MiB`);
      case 'failed':
        return new ExtractionError('unreadable', 'The content cannot be read');
      case 'stopped':
        return new ExtractionError('cancelled', 'The reading was cancelled');
    }
  }
}
