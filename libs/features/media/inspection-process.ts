import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type {
  InspectionAnswer,
  InspectionFailure,
  InspectionReply,
  InspectionRequest,
  InspectionTask,
} from './file-inspection.ts';

/**
 * Writable memory that Node maps without using it, most of it for machine code. The limit of the kernel counts it, so it
 * comes on top of what the process may use.
 */
const MAPPED_KIB = 520 * 1024;
const MEMORY_CHECK_MS = 20;
const PAGE_BYTES = 4_096;
const FLAGS = ['--no-warnings', '--max-old-space-size=128', '--max-semi-space-size=2', '--v8-pool-size=1'];

export interface InspectionLimits {
  /** Of one file. */
  readonly timeoutMs: number;
  /** Resident memory of the process. */
  readonly maxMemoryBytes: number;
  /** Files at once. */
  readonly concurrency: number;
  /** Of processor time, over all files. Ends a process that computes for ever and whose worker was killed. */
  readonly maxProcessorSeconds: number;
}

interface Job {
  /** Whether other files were inspected at the same time, at any time. */
  isShared: boolean;
  settle(answer: InspectionAnswer): void;
}

const DIED = failure('processing it takes too much memory, or fails');
const TOO_MUCH_MEMORY = failure('processing it takes too much memory');

/**
 * A child process that inspects files, several at once.
 *
 * Guarantees: a file that takes too much time or memory, or ends the process, ends with a failed answer. So do the others
 * that it inspects at the same time: their answers are not certain. Linux bounds the memory at each allocation; other
 * systems do not.
 */
export class InspectionProcess {
  readonly #child: ChildProcess;
  readonly #limits: InspectionLimits;
  readonly #jobs = new Map<number, Job>();
  readonly #memoryChecks: NodeJS.Timeout;
  /** Resolves when its memory is free again. */
  readonly exited: Promise<void>;
  /** Loading its modules does not count as time of a file. */
  readonly #started: Promise<void>;
  #lastId = 0;
  #isUsable = true;

  constructor(limits: InspectionLimits) {
    this.#limits = limits;
    this.#child = start(limits);
    const started = Promise.withResolvers<void>();
    const exited = Promise.withResolvers<void>();
    this.#started = started.promise;
    this.exited = exited.promise;
    this.#child.once('message', () => {
      started.resolve();
      this.#child.on('message', (reply: InspectionReply) => this.#receive(reply));
    });
    for (const event of ['exit', 'error']) {
      this.#child.on(event, () => {
        started.resolve();
        exited.resolve();
        this.end(DIED);
      });
    }
    this.#memoryChecks = setInterval(() => this.#checkMemory(), MEMORY_CHECK_MS).unref();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it can inspect further files. */
  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** @throws Error if the process does not start; the reason of `signal`, after which the files are not used any longer */
  async inspect(request: InspectionRequest, signal: AbortSignal): Promise<InspectionAnswer> {
    await this.#started;
    signal.throwIfAborted();
    if (!this.#isUsable) throw new Error('the process that inspects files did not start');
    const { timeoutMs } = this.#limits;
    const timer = setTimeout(() => {
      this.end(failure(`processing it takes longer than ${timeoutMs / 1_000} s`));
    }, timeoutMs);
    const cancel = (): void => this.end(failure('processing it was stopped'));
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const answer = await this.#ask(request);
      signal.throwIfAborted();
      return answer;
    } finally {
      signal.removeEventListener('abort', cancel);
      clearTimeout(timer);
    }
  }

  /** Ends the process, and the files it inspects with the answer. */
  end(answer: InspectionFailure): void {
    this.#isUsable = false;
    clearInterval(this.#memoryChecks);
    this.#child.kill('SIGKILL');
    const jobs = [...this.#jobs.values()];
    this.#jobs.clear();
    for (const { isShared, settle } of jobs) settle({ ...answer, isCertain: !isShared });
  }

  #ask(request: InspectionRequest): Promise<InspectionAnswer> {
    return new Promise((settle) => {
      for (const other of this.#jobs.values()) other.isShared = true;
      const task: InspectionTask = { ...request, id: (this.#lastId += 1) };
      this.#jobs.set(task.id, { isShared: this.#jobs.size > 0, settle });
      // A process that has died says so by its event.
      this.#child.send(task, () => undefined);
    });
  }

  #receive({ id, answer, isLast }: InspectionReply): void {
    if (isLast) this.#isUsable = false;
    const job = this.#jobs.get(id);
    this.#jobs.delete(id);
    const isCertain = !answer.ok && (answer.isCertain || job?.isShared === false);
    job?.settle(answer.ok ? answer : { ...answer, isCertain });
    if (!this.#isUsable && this.#jobs.size === 0) this.end(DIED);
  }

  /** For what the kernel does not count as data, such as mapped files. */
  #checkMemory(): void {
    if (this.#jobs.size === 0) return;
    const usedBytes = Number(statmOf(this.#child).split(' ')[1] ?? 0) * PAGE_BYTES;
    if (usedBytes > this.#limits.maxMemoryBytes) this.end(TOO_MUCH_MEMORY);
  }
}

function start({ maxMemoryBytes, concurrency, maxProcessorSeconds }: InspectionLimits): ChildProcess {
  const script = fileURLToPath(new URL('./inspect.process.ts', import.meta.url));
  const maxDataKib = Math.ceil(maxMemoryBytes / 1024) + MAPPED_KIB;
  const limits = `ulimit -c 0; ulimit -s 2048; ulimit -t ${maxProcessorSeconds}; ulimit -d ${maxDataKib} 2>/dev/null`;
  const child = spawn('/bin/sh', ['-c', `${limits}; exec "$0" "$@"`, process.execPath, ...FLAGS, script], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Threads of images, and one for reading files. Each thread and each arena of the allocator counts as memory.
    env: { MALLOC_ARENA_MAX: '2', UV_THREADPOOL_SIZE: String(concurrency + 1) },
  });
  child.unref();
  child.channel?.unref();
  return child;
}

/** Empty if the process has ended, and on systems without `/proc`. Not read in the thread pool: it takes no disk. */
function statmOf({ pid }: ChildProcess): string {
  try {
    return readFileSync(`/proc/${pid}/statm`, 'latin1');
  } catch {
    return '';
  }
}

function failure(reason: string): InspectionFailure {
  return { ok: false, reason, type: null, isCertain: false };
}
