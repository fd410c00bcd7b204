import { availableParallelism } from 'node:os';

import { InspectionError } from './file-inspection.ts';
import type { Inspected, InspectionAnswer, InspectionRequest } from './file-inspection.ts';
import { InspectionProcess } from './inspection-process.ts';
import type { InspectionLimits } from './inspection-process.ts';

const DEFAULTS: InspectionLimits = {
  timeoutMs: 20_000,
  // Less than 512 MiB together with a worker.
  maxMemoryBytes: 224 * 1024 * 1024,
  concurrency: Math.min(availableParallelism(), 4),
  // More than the process takes until it is replaced, with all files that it may have then.
  maxProcessorSeconds: 300,
};
/** Until the process ends that inspects no files. */
const IDLE_MS = 30_000;

interface Turn {
  readonly isAlone: boolean;
  start(): void;
}

/**
 * Inspects files in a child process, several at once. When that process dies, or a file seems damaged, others may be the
 * reason: such files are inspected again, each alone.
 *
 * Guarantees: a file that takes too much time or memory, or ends the process, ends with an InspectionError, and the next
 * one gets a new process. There is one process at a time. Does not: bound the memory on systems without `ulimit -d` and
 * `/proc`.
 */
export class FileInspector {
  readonly #limits: InspectionLimits;
  readonly #waiting: Turn[] = [];
  readonly #closing = new AbortController();
  #process: InspectionProcess | null = null;
  /** Of the process before. Two at a time would have twice the memory. */
  #exited: Promise<void> = Promise.resolve();
  #running = 0;
  #isAlone = false;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(limits: Partial<InspectionLimits> = {}) {
    this.#limits = { ...DEFAULTS, ...limits };
  }

  /** The process, while there is one. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** @throws InspectionError; the reason of `signal`, after which the files are not used any longer */
  async inspect(request: InspectionRequest, signal: AbortSignal): Promise<Inspected> {
    const stopping = AbortSignal.any([signal, this.#closing.signal]);
    let answer = await this.#inTurn(request, false, stopping);
    if (!answer.ok && !answer.isCertain) answer = await this.#inTurn(request, true, stopping);
    if (!answer.ok) throw new InspectionError(answer.reason, answer.type);
    const { ok: _ok, ...found } = answer;
    return found;
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the process stops'));
    clearTimeout(this.#idleTimer);
    this.#endProcess();
  }

  async #inTurn(request: InspectionRequest, isAlone: boolean, signal: AbortSignal): Promise<InspectionAnswer> {
    await this.#turn(isAlone, signal);
    try {
      await this.#exited;
      this.#process ??= new InspectionProcess(this.#limits);
      return await this.#process.inspect(request, signal);
    } finally {
      this.#running -= 1;
      this.#isAlone = false;
      this.#next();
    }
  }

  /** Resolves when the file may be inspected: those that are inspected alone first, else in the order of calls. */
  #turn(isAlone: boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        reject(signal.reason as Error);
        this.#next();
      };
      const turn: Turn = {
        isAlone,
        start() {
          signal.removeEventListener('abort', cancel);
          resolve();
        },
      };
      signal.addEventListener('abort', cancel, { once: true });
      if (isAlone) this.#waiting.unshift(turn);
      else this.#waiting.push(turn);
      this.#next();
    });
  }

  #next(): void {
    clearTimeout(this.#idleTimer);
    for (let turn = this.#waiting[0]; turn !== undefined && this.#mayStart(turn); turn = this.#waiting[0]) {
      this.#running += 1;
      this.#isAlone = turn.isAlone;
      this.#waiting.shift();
      turn.start();
    }
    if (this.#running === 0) this.#idleTimer = setTimeout(() => this.#endProcess(), IDLE_MS).unref();
  }

  #mayStart({ isAlone }: Turn): boolean {
    if (this.#running === 0) {
      if (this.#process?.isUsable === false) this.#endProcess();
      return true;
    }
    if (isAlone || this.#isAlone) return false;
    return this.#running < this.#limits.concurrency && this.#process?.isUsable !== false;
  }

  #endProcess(): void {
    if (this.#process === null) return;
    this.#exited = this.#process.exited;
    this.#process.end({ ok: false, reason: 'the process stops', type: null, isCertain: false });
    this.#process = null;
  }
}
