import { Worker, parentPort } from 'node:worker_threads';
import { Fault } from '#libs/kernel/faults.ts';
import type { IndexCacheOptions, IndexCache, OpenIndex } from './index-cache.ts';
import { isUnusable } from './index-file.ts';

export interface OpenMeasures {
  readonly count: number;
  readonly bytes: number;
}

/** Requests to a thread, whose tasks all may be repeated. */
export type ThreadRequest<Task> = (Task & { readonly id: number }) | { readonly kind: 'close' };

export type ThreadReply = { readonly id: number } & (
  | { readonly value: unknown; readonly open: OpenMeasures }
  /** The file was damaged or of another version, and is deleted. */
  | { readonly unusable: string }
  | { readonly failure: string }
);

/** The file was deleted: the index starts again at the first event. */
export class UnusableIndex extends Error {
  override readonly name = 'UnusableIndex';
}

/** The thread ended before it answered. */
class ThreadEnded extends Error {
  override readonly name = 'ThreadEnded';
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const NONE_OPEN: OpenMeasures = { count: 0, bytes: 0 };

/** A thread for indexes. It starts with the first task, and again with the first one after it has died. */
export class SearchThread<Task extends object> {
  readonly #script: URL;
  readonly #options: IndexCacheOptions;
  readonly #onDeath: (error: unknown) => void;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #ended: Promise<void> = Promise.resolve();
  #isClosed = false;
  #lastId = 0;
  open = NONE_OPEN;

  /** @param script serves the tasks, by `serveIndexes`; `options` are its `workerData` */
  constructor(script: URL, options: IndexCacheOptions, onDeath: (error: unknown) => void) {
    this.#script = script;
    this.#options = options;
    this.#onDeath = onDeath;
  }

  /**
   * Repeats the task once if the thread dies: every task may be repeated.
   *
   * @throws UnusableIndex; `Fault` `stopping` after `close`, `store_unavailable` for any other failure
   */
  async run(task: Task): Promise<unknown> {
    try {
      return await this.#runOnce(task).catch((error: unknown) => {
        if (error instanceof ThreadEnded && !this.#isClosed) return this.#runOnce(task);
        throw error;
      });
    } catch (error) {
      if (error instanceof Fault || error instanceof UnusableIndex) throw error;
      if (this.#isClosed) throw stopping();
      throw new Fault('store_unavailable', 'The search index is unavailable', { cause: error, retryAfterSeconds: 2 });
    }
  }

  #runOnce(task: Task): Promise<unknown> {
    if (this.#isClosed) throw stopping();
    this.#worker ??= this.#start();
    const id = ++this.#lastId;
    const done = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#send({ ...task, id });
    return done;
  }

  #start(): Worker {
    const worker = new Worker(this.#script, {
      workerData: this.#options,
      // Without the flags of a test runner or profiler.
      execArgv: [],
      name: 'search',
    });
    // A process that forgets to close ends all the same.
    worker.unref();
    let failure: unknown = new ThreadEnded('the search thread ended');
    worker.on('message', (reply: ThreadReply) => this.#settle(reply));
    worker.on('error', (error) => (failure = error));
    this.#ended = new Promise((resolve) => {
      worker.once('exit', () => {
        this.#forget(failure);
        resolve();
      });
    });
    return worker;
  }

  #settle(reply: ThreadReply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if ('unusable' in reply) waiting?.reject(new UnusableIndex(reply.unusable));
    else if ('failure' in reply) waiting?.reject(new Error(reply.failure));
    else {
      this.open = reply.open;
      waiting?.resolve(reply.value);
    }
  }

  #forget(failure: unknown): void {
    this.#worker = null;
    this.open = NONE_OPEN;
    if (!this.#isClosed) this.#onDeath(failure);
    const unanswered = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of unanswered) reject(new ThreadEnded('the search thread ended', { cause: failure }));
  }

  #send(request: ThreadRequest<Task>): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker?.postMessage(request);
  }

  /** Closes the files. Tasks under way are answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#send({ kind: 'close' });
    await this.#ended;
  }

  /** Ends the thread at once, for tests of its failure. */
  async kill(): Promise<void> {
    await this.#worker?.terminate();
  }
}

function stopping(): Fault {
  return new Fault('stopping', 'This process is stopping', { retryAfterSeconds: 2 });
}

const IDLE_CHECK_MS = 60_000;
const REMOVAL_CHECK_MS = 24 * 60 * 60_000;

/**
 * Serves the tasks of a `SearchThread` in this thread, one after the other. A file that is unusable is deleted.
 *
 * @param indexOf the index of a task
 */
export function serveIndexes<Index extends OpenIndex, Task extends object>(
  indexes: IndexCache<Index>,
  indexOf: (task: Task) => string,
  answer: (task: Task) => unknown,
): void {
  const checks = [
    setInterval(() => indexes.closeIdle(), IDLE_CHECK_MS),
    setInterval(() => indexes.removeUnused(Date.now()), REMOVAL_CHECK_MS),
  ];
  indexes.removeUnused(Date.now());
  const replyTo = (request: Task & { readonly id: number }): ThreadReply => {
    const { id } = request;
    try {
      return { id, value: answer(request), open: indexes.measures };
    } catch (error) {
      if (!isUnusable(error)) return { id, failure: String(error) };
      indexes.delete(indexOf(request));
      return { id, unusable: String(error) };
    }
  };
  parentPort?.on('message', (request: ThreadRequest<Task>) => {
    if ('id' in request) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      parentPort?.postMessage(replyTo(request));
      return;
    }
    for (const check of checks) clearInterval(check);
    indexes.close();
    parentPort?.close();
  });
}
