import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Task, TaskAnswer, TaskFailureKind, TaskReply } from './bounded-task.ts';

/**
 * Writable memory that Node maps without using it, most of it for machine code. The limit of the kernel counts it, so it
 * comes on top of what the process may use.
 */
const MAPPED_KIB = 520 * 1024;
const MEMORY_CHECK_MS = 20;
const PAGE_BYTES = 4_096;
const FLAGS = ['--no-warnings', '--v8-pool-size=1'];

export interface ProcessLimits {
  /** The module that the process runs: it calls `serveTasks`. */
  readonly script: URL;
  /** Of one task. */
  readonly timeoutMs: number;
  /** Resident memory of the process. */
  readonly maxMemoryBytes: number;
  /** Heap of JavaScript, a part of the memory. */
  readonly maxHeapMib: number;
  /** Of one half of the heap's young generation: more is faster for tasks that allocate much. */
  readonly semiSpaceMib: number;
  /** Tasks at once in one process. */
  readonly tasksAtOnce: number;
  /** Of processor time, over all tasks. Ends a process that computes for ever and whose parent was killed. */
  readonly maxProcessorSeconds: number;
}

interface Job {
  /** Whether the process had other tasks at the same time, at any time. */
  isShared: boolean;
  /** Whether it is the first task of the process. */
  readonly isFirst: boolean;
  settle(answer: TaskAnswer): void;
}

/**
 * A child process that runs tasks, several at once. It gets no environment of ours, so it holds no secrets.
 *
 * Guarantees: a task that takes too much time or memory, or ends the process, ends with a failed answer. So do the others
 * that run at the same time: their answers are not certain. Linux bounds the memory at each allocation; other systems do
 * not.
 */
export class BoundedProcess {
  readonly #child: ChildProcess;
  readonly #limits: ProcessLimits;
  readonly #jobs = new Map<number, Job>();
  readonly #memoryChecks: NodeJS.Timeout;
  /** Resolves when its memory is free again. */
  readonly exited: Promise<void>;
  /** Loading its modules does not count as time of a task. */
  readonly #started: Promise<void>;
  #lastId = 0;
  #isUsable = true;

  constructor(limits: ProcessLimits) {
    this.#limits = limits;
    this.#child = start(limits);
    const started = Promise.withResolvers<void>();
    const exited = Promise.withResolvers<void>();
    this.#started = started.promise;
    this.exited = exited.promise;
    this.#child.once('message', () => {
      // From here on, only the time limits of tasks keep the parent running.
      this.#child.channel?.unref();
      started.resolve();
      this.#child.on('message', (reply: TaskReply) => this.#receive(reply));
    });
    for (const event of ['exit', 'error']) {
      this.#child.on(event, () => {
        started.resolve();
        exited.resolve();
        this.end('died');
      });
    }
    this.#memoryChecks = setInterval(() => this.#checkMemory(), MEMORY_CHECK_MS).unref();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it can take further tasks. */
  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** @throws Error if the process does not start; the reason of `signal`, after which nothing of the task is used */
  async run(request: unknown, signal: AbortSignal, timeoutMs = this.#limits.timeoutMs): Promise<TaskAnswer> {
    await this.#started;
    signal.throwIfAborted();
    if (!this.#isUsable) throw new Error(`the process of ${this.#limits.script.pathname} did not start`);
    const timer = setTimeout(() => this.end('timeout'), timeoutMs);
    const cancel = (): void => this.end('stopped');
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

  /** Ends the process, and its tasks with a failure of this kind. */
  end(kind: TaskFailureKind): void {
    this.#isUsable = false;
    clearInterval(this.#memoryChecks);
    this.#child.kill('SIGKILL');
    const jobs = [...this.#jobs.values()];
    this.#jobs.clear();
    for (const { isShared, isFirst, settle } of jobs) {
      // An earlier task may have left the process about to die.
      settle({ ok: false, kind, message: '', detail: null, isCertain: !isShared && (isFirst || kind !== 'died') });
    }
  }

  #ask(request: unknown): Promise<TaskAnswer> {
    return new Promise((settle) => {
      for (const other of this.#jobs.values()) other.isShared = true;
      const task: Task = { id: (this.#lastId += 1), request };
      this.#jobs.set(task.id, { isShared: this.#jobs.size > 0, isFirst: task.id === 1, settle });
      // A process that has died says so by its event.
      this.#child.send(task, () => undefined);
    });
  }

  #receive({ id, answer, isLast }: TaskReply): void {
    if (isLast) this.#isUsable = false;
    const job = this.#jobs.get(id);
    this.#jobs.delete(id);
    const isCertain = !answer.ok && (answer.isCertain || job?.isShared === false);
    job?.settle(answer.ok ? answer : { ...answer, isCertain });
    if (!this.#isUsable && this.#jobs.size === 0) this.end('died');
  }

  /** For what the kernel does not count as data, such as mapped files. */
  #checkMemory(): void {
    if (this.#jobs.size === 0) return;
    const usedBytes = Number(statmOf(this.#child).split(' ')[1] ?? 0) * PAGE_BYTES;
    if (usedBytes > this.#limits.maxMemoryBytes) this.end('memory');
  }
}

function start(limits: ProcessLimits): ChildProcess {
  const { maxMemoryBytes, maxHeapMib, semiSpaceMib, tasksAtOnce, maxProcessorSeconds } = limits;
  const script = fileURLToPath(limits.script);
  const maxDataKib = Math.ceil(maxMemoryBytes / 1024) + MAPPED_KIB;
  const ulimits = `ulimit -c 0; ulimit -s 2048; ulimit -t ${maxProcessorSeconds}; ulimit -d ${maxDataKib} 2>/dev/null`;
  const flags = [...FLAGS, `--max-old-space-size=${maxHeapMib}`, `--max-semi-space-size=${semiSpaceMib}`];
  const child = spawn('/bin/sh', ['-c', `${ulimits}; exec "$0" "$@"`, process.execPath, ...flags, script], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // As structured clones: bytes and undefined arrive as they are.
    serialization: 'advanced',
    // Threads of images, and a thread for reading files. Each thread and each arena of the allocator counts as memory.
    env: { MALLOC_ARENA_MAX: '2', UV_THREADPOOL_SIZE: String(tasksAtOnce + 1), ...compileCache() },
  });
  child.unref();
  return child;
}

/**
 * Without the cache, a process compiles its modules for more than half of its start. Node keeps a folder for each of its
 * versions in the folder that the variable names.
 */
function compileCache(): Record<string, string> {
  const ofVersion = getCompileCacheDir();
  return ofVersion === undefined ? {} : { NODE_COMPILE_CACHE: dirname(ofVersion) };
}

/** Empty if the process has ended, and on systems without `/proc`. Not read in the thread pool: it takes no disk. */
function statmOf({ pid }: ChildProcess): string {
  try {
    return readFileSync(`/proc/${pid}/statm`, 'latin1');
  } catch {
    return '';
  }
}
