import { BoundedProcess, type ProcessLimits } from './bounded-process.ts';
import { type TaskAnswer, TaskError } from './bounded-task.ts';

export interface BoundedPoolOptions extends Omit<ProcessLimits, 'maxProcessorSeconds'> {
  /** Processes at once, each for the tasks of another group. */
  readonly processes: number;
  /** Default: 300, more than a process takes until it is replaced, with all tasks that it may have then. */
  readonly maxProcessorSeconds?: number;
}

export interface TaskOptions {
  /** Groups take turns, and never share a process at the same time. For an organization: its id. */
  readonly group: string;
  readonly signal?: AbortSignal | undefined;
  /** Default: that of the pool. */
  readonly timeoutMs?: number | undefined;
}

/** Until a process ends that has no tasks. */
const IDLE_MS = 30_000;
const MAX_PROCESSOR_SECONDS = 300;

interface WaitingTask {
  readonly isAlone: boolean;
  start(slot: Slot): void;
}

/** Where one process runs at a time, for one group at a time. */
interface Slot {
  process: BoundedProcess | null;
  /** Of the process before. Two at a time would have twice the memory. */
  exited: Promise<void>;
  group: string | null;
  running: number;
  isAlone: boolean;
  /** Tasks that have started since the group has the slot. */
  started: number;
  idleTimer: NodeJS.Timeout | undefined;
}

/**
 * Runs tasks in child processes of bounded memory and time. When a process dies, or a task fails for an unknown reason,
 * other tasks in the process may be the reason: such tasks run again, each alone.
 *
 * Guarantees: a task that takes too much time or memory, or ends the process, ends with a TaskError, and the next one gets
 * a new process. A group has one process at a time, and the others take turns with it: whatever the tasks of a group do,
 * those of another one wait for at most one round of them. Does not: bound the memory on systems without `ulimit -d` and
 * `/proc`.
 */
export class BoundedPool<Request, Result> {
  readonly #limits: ProcessLimits;
  readonly #slots: readonly Slot[];
  /** Groups with waiting tasks, in the order in which they get processes. */
  readonly #waiting = new Map<string, WaitingTask[]>();
  readonly #closing = new AbortController();

  constructor({ processes, maxProcessorSeconds = MAX_PROCESSOR_SECONDS, ...limits }: BoundedPoolOptions) {
    this.#limits = { ...limits, maxProcessorSeconds };
    this.#slots = Array.from({ length: processes }, () => ({
      process: null,
      exited: Promise.resolve(),
      group: null,
      running: 0,
      isAlone: false,
      started: 0,
      idleTimer: undefined,
    }));
  }

  /** The processes that run. */
  get pids(): readonly number[] {
    return this.#slots.flatMap(({ process }) => process?.pid ?? []);
  }

  /** @throws TaskError; the reason of the signal, after which nothing of the task is used any longer */
  async run(request: Request, { group, signal, timeoutMs }: TaskOptions): Promise<Result> {
    const stopping = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const attempt = (isAlone: boolean): Promise<TaskAnswer> =>
      this.#withSlot(group, isAlone, stopping, (process) => process.run(request, stopping, timeoutMs));
    let answer = await attempt(false);
    if (!answer.ok && !answer.isCertain) answer = await attempt(true);
    if (!answer.ok) throw new TaskError(answer.kind, answer.message, { detail: answer.detail });
    return answer.result as Result;
  }

  /** Ends the processes; tasks fail with the reason. */
  async close(reason: Error = new Error('the process stops')): Promise<void> {
    this.#closing.abort(reason);
    for (const slot of this.#slots) {
      clearTimeout(slot.idleTimer);
      endProcess(slot);
    }
  }

  async #withSlot(
    group: string,
    isAlone: boolean,
    signal: AbortSignal,
    work: (process: BoundedProcess) => Promise<TaskAnswer>,
  ): Promise<TaskAnswer> {
    const slot = await this.#slotFor(group, isAlone, signal);
    try {
      await slot.exited;
      slot.process ??= new BoundedProcess(this.#limits);
      return await work(slot.process);
    } finally {
      slot.running -= 1;
      slot.isAlone = false;
      this.#next();
    }
  }

  /** Resolves when the task may run: those that run alone before the others of their group, else in the order of calls. */
  #slotFor(group: string, isAlone: boolean, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const tasks = this.#waiting.get(group) ?? [];
      const cancel = (): void => {
        tasks.splice(tasks.indexOf(task), 1);
        if (tasks.length === 0) this.#waiting.delete(group);
        reject(signal.reason as Error);
        this.#next();
      };
      const task: WaitingTask = {
        isAlone,
        start(slot) {
          signal.removeEventListener('abort', cancel);
          resolve(slot);
        },
      };
      signal.addEventListener('abort', cancel, { once: true });
      if (isAlone) tasks.unshift(task);
      else tasks.push(task);
      this.#waiting.set(group, tasks);
      this.#next();
    });
  }

  #next(): void {
    // 1. Groups that have a process, until others need it.
    for (const slot of this.#slots) {
      if (slot.group !== null) this.#startOf(slot);
      if (slot.group === null || slot.running > 0) continue;
      this.#toEnd(slot.group);
      slot.group = null;
    }
    // 2. Groups that have none, in their order.
    for (const slot of this.#slots) {
      const group = slot.group === null ? this.#groupWithoutProcess() : undefined;
      if (group === undefined) continue;
      slot.group = group;
      slot.started = 0;
      this.#startOf(slot);
    }
    for (const slot of this.#slots) {
      clearTimeout(slot.idleTimer);
      if (slot.running === 0 && slot.process !== null)
        slot.idleTimer = setTimeout(() => endProcess(slot), IDLE_MS).unref();
    }
  }

  #startOf(slot: Slot): void {
    const tasks = this.#waiting.get(slot.group ?? '') ?? [];
    for (let task = tasks[0]; task !== undefined && this.#mayStart(slot, task); task = tasks[0]) {
      slot.running += 1;
      slot.started += 1;
      slot.isAlone = task.isAlone;
      tasks.shift();
      if (tasks.length === 0) this.#waiting.delete(slot.group ?? '');
      task.start(slot);
    }
  }

  #mayStart(slot: Slot, { isAlone }: WaitingTask): boolean {
    const { tasksAtOnce } = this.#limits;
    const isRoundOver = slot.started >= tasksAtOnce && this.#groupWithoutProcess() !== undefined;
    if (isRoundOver) return false;
    if (slot.running === 0) {
      if (slot.process?.isUsable === false) endProcess(slot);
      return true;
    }
    if (isAlone || slot.isAlone) return false;
    return slot.running < tasksAtOnce && slot.process?.isUsable !== false;
  }

  #groupWithoutProcess(): string | undefined {
    for (const group of this.#waiting.keys()) if (this.#slots.every((slot) => slot.group !== group)) return group;
    return undefined;
  }

  #toEnd(group: string): void {
    const tasks = this.#waiting.get(group);
    if (tasks !== undefined && this.#waiting.delete(group)) this.#waiting.set(group, tasks);
  }
}

function endProcess(slot: Slot): void {
  if (slot.process === null) return;
  slot.exited = slot.process.exited;
  slot.process.end('stopped');
  slot.process = null;
}
