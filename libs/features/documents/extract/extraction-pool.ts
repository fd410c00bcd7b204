import { Worker } from 'node:worker_threads';

import type { Answer, Question } from './extract.thread.ts';
import { ExtractionError } from './extraction.ts';
import type { Content, Extraction, Page, PageSource, PageWithFacts, PdfText } from './extraction.ts';

export interface TaskLimits {
  /** From the start of the task: waiting for a thread does not count. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface Job extends Question {
  readonly timeoutMs: number;
  readonly finish: (outcome: Answer) => void;
}

interface Thread {
  readonly worker: Worker;
  job: Job | null;
  timer: NodeJS.Timeout | null;
}

const THREADS = 2;
const TIMEOUT_MS = 10_000;
const HEAP_MIB = 384;

/**
 * Reads pages and documents in threads of their own, which start when they are first needed. A task that exceeds its
 * time or memory ends its thread and fails with an ExtractionError; the next task gets a new thread.
 */
export class ExtractionPool {
  readonly #threads = new Set<Thread>();
  readonly #waiting: Job[] = [];
  readonly #size: number;
  readonly #heapMib: number;
  #closed = false;

  constructor({ threads = THREADS, heapMib = HEAP_MIB }: { threads?: number; heapMib?: number } = {}) {
    this.#size = threads;
    this.#heapMib = heapMib;
  }

  readPage(bytes: Uint8Array, source: PageSource, limits?: TaskLimits): Promise<Page> {
    return this.#run('readPage', [bytes, source], limits);
  }

  /** As `readPage` and `extractFacts`, in one task: threads take longer to be given work than for most of it. */
  readPageWithFacts(
    bytes: Uint8Array,
    source: PageSource,
    documentId: string,
    limits?: TaskLimits,
  ): Promise<PageWithFacts> {
    return this.#run('readPageWithFacts', [bytes, source, documentId], limits);
  }

  readPdf(bytes: Uint8Array, limits?: TaskLimits): Promise<PdfText> {
    return this.#run('readPdf', [bytes], limits);
  }

  extractFacts(content: Content, limits?: TaskLimits): Promise<Extraction> {
    return this.#run('extractFacts', [content], limits);
  }

  /** Ends the threads; tasks under way fail with the reason `closed`. */
  async close(): Promise<void> {
    this.#closed = true;
    const failure = { ok: false, reason: 'closed', message: 'Parley is stopping' } as const;
    for (const job of this.#waiting.splice(0)) job.finish(failure);
    await Promise.all([...this.#threads].map((thread) => this.#end(thread, failure)));
  }

  #run<Result>(task: string, input: readonly unknown[], limits: TaskLimits = {}): Promise<Result> {
    const { timeoutMs = TIMEOUT_MS, signal } = limits;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new ExtractionError('closed', 'Parley is stopping'));
      if (signal?.aborted === true) return reject(new ExtractionError('cancelled', 'The reading was cancelled'));
      const cancel = (): void => this.#cancel(job);
      const job: Job = {
        task,
        input,
        timeoutMs,
        finish: (outcome) => {
          signal?.removeEventListener('abort', cancel);
          if (outcome.ok) resolve(outcome.result as Result);
          else reject(new ExtractionError(outcome.reason, outcome.message));
        },
      };
      signal?.addEventListener('abort', cancel, { once: true });
      this.#waiting.push(job);
      this.#next();
    });
  }

  /** Gives waiting jobs to idle threads. */
  #next(): void {
    while (this.#waiting.length > 0 && !this.#closed) {
      const idle = [...this.#threads].find(({ job }) => job === null);
      if (idle === undefined && this.#threads.size >= this.#size) return;
      this.#start(idle ?? this.#newThread(), this.#waiting.shift()!);
    }
  }

  #start(thread: Thread, job: Job): void {
    thread.job = job;
    thread.worker.ref();
    const seconds = job.timeoutMs / 1_000;
    thread.timer = setTimeout(() => {
      void this.#end(thread, { ok: false, reason: 'timeout', message: `Reading it takes longer than ${seconds} s` });
    }, job.timeoutMs);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    thread.worker.postMessage({ task: job.task, input: job.input } satisfies Question);
  }

  #newThread(): Thread {
    const worker = new Worker(new URL('./extract.thread.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMib, maxYoungGenerationSizeMb: 32 },
    });
    const thread: Thread = { worker, job: null, timer: null };
    this.#threads.add(thread);
    worker.on('message', (answer: Answer) => {
      this.#finish(thread, answer);
      this.#next();
    });
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      void this.#end(thread, {
        ok: false,
        reason: isFull ? 'out_of_memory' : 'unreadable',
        message: isFull ? `Reading it takes more than ${this.#heapMib} MiB` : 'The content cannot be read',
      });
    });
    return thread;
  }

  #cancel(job: Job): void {
    const failure = { ok: false, reason: 'cancelled', message: 'The reading was cancelled' } as const;
    const at = this.#waiting.indexOf(job);
    if (at !== -1) {
      this.#waiting.splice(at, 1);
      return job.finish(failure);
    }
    for (const thread of this.#threads) if (thread.job === job) void this.#end(thread, failure);
  }

  #finish(thread: Thread, answer: Answer): void {
    if (thread.timer !== null) clearTimeout(thread.timer);
    const { job } = thread;
    thread.job = null;
    thread.timer = null;
    // An idle thread does not keep the process running.
    thread.worker.unref();
    job?.finish(answer);
  }

  /** Replaces the thread, whatever it does. */
  async #end(thread: Thread, answer: Answer): Promise<void> {
    this.#threads.delete(thread);
    this.#finish(thread, answer);
    this.#next();
    await thread.worker.terminate();
  }
}
