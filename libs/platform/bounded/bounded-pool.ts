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

interface Turn {
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
  /** Groups with waiting tasks, in the order of their turns. */
  readonly #waiting = new Map<string, Turn[]>();
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
      this.#inTurn(group, isAlone, stopping, (process) => process.run(request, stopping, timeoutMs));
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

  async #inTurn(
    group: string,
    isAlone: boolean,
    signal: AbortSignal,
    work: (process: BoundedProcess) => Promise<TaskAnswer>,
  ): Promise<TaskAnswer> {
    const slot = await this.#turn(group, isAlone, signal);
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
  #turn(group: string, isAlone: boolean, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const turns = this.#waiting.get(group) ?? [];
      const cancel = (): void => {
        turns.splice(turns.indexOf(turn), 1);
        if (turns.length === 0) this.#waiting.delete(group);
        reject(signal.reason as Error);
        this.#next();
      };
      const turn: Turn = {
        isAlone,
        start(slot) {
          signal.removeEventListener('abort', cancel);
          resolve(slot);
        },
      };
      signal.addEventListener('abort', cancel, { once: true });
      if (isAlone) turns.unshift(turn);
      else turns.push(turn);
      this.#waiting.set(group, turns);
      this.#next();
    });
  }

  #next(): void {
    // 1. Groups that have a process, until it is the turn of others.
    for (const slot of this.#slots) {
      if (slot.group !== null) this.#startOf(slot);
      if (slot.group === null || slot.running > 0) continue;
      this.#toEnd(slot.group);
      slot.group = null;
    }
    // 2. Groups that have none, in turn.
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
    const turns = this.#waiting.get(slot.group ?? '') ?? [];
    for (let turn = turns[0]; turn !== undefined && this.#mayStart(slot, turn); turn = turns[0]) {
      slot.running += 1;
      slot.started += 1;
      slot.isAlone = turn.isAlone;
      turns.shift();
      if (turns.length === 0) this.#waiting.delete(slot.group ?? '');
      turn.start(slot);
    }
  }

  #mayStart(slot: Slot, { isAlone }: Turn): boolean {
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
    const turns = this.#waiting.get(group);
    if (turns !== undefined && this.#waiting.delete(group)) this.#waiting.set(group, turns);
  }
}

function endProcess(slot: Slot): void {
  if (slot.process === null) return;
  slot.exited = slot.process.exited;
  slot.process.end('stopped');
  slot.process = null;
}
