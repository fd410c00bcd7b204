/**
 * One worker thread for all inline event stores of a process. Loading the server's code takes half a second per
 * thread; starting another store in the same thread takes milliseconds.
 */
import { Worker, type MessagePort } from 'node:worker_threads';

import type { EventStoreOptions } from '#infra/embedded-eventstore/index.ts';

import type { Reply, Request } from './event-store.thread.ts';

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

export interface StartedInThread {
  readonly localPort: MessagePort | undefined;
  stop(): Promise<void>;
}

export class EventStoreThread {
  readonly #worker = new Worker(new URL('./event-store.thread.ts', import.meta.url), {
    // The flags of the test runner are not meant for this thread.
    execArgv: [],
    name: 'event-stores-of-tests',
  });
  readonly #waiting = new Map<number, Waiting>();
  readonly #running = new Set<number>();
  #lastId = 0;

  constructor() {
    this.#worker.on('message', (reply: Reply) => {
      const { id, error } = reply;
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(reply);
      else waiting?.reject(new Error(error));
    });
    this.#worker.unref();
  }

  async start(options: EventStoreOptions): Promise<StartedInThread> {
    const store = ++this.#lastId;
    this.#running.add(store);
    // Only a running store keeps the process alive.
    this.#worker.ref();
    const forget = (): void => {
      this.#running.delete(store);
      if (this.#running.size === 0) this.#worker.unref();
    };
    const { localPort } = await this.#request({ store, start: options }).catch((error: unknown) => {
      forget();
      throw error;
    });
    return {
      localPort,
      stop: async () => void (await this.#request({ store }).finally(forget)),
    };
  }

  /** Blocks the thread, and all its stores. @returns a function that ends it */
  pause(): () => void {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    void this.#request({ store: 0, pause });
    return () => {
      Atomics.store(pause, 0, 1);
      Atomics.notify(pause, 0);
    };
  }

  #request(request: Omit<Request, 'id'>): Promise<Reply> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      this.#worker.postMessage({ ...request, id });
    });
  }
}
