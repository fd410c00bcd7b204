/** Messages between the parent and its bounded process. Plain data. */
import { flushCompileCache } from 'node:module';

/**
 * Why a task has failed: `refused` by a rule, `failed` for a reason that its handler does not know, `timeout`, `memory`,
 * `died` with its process, `stopped` because its result is not wanted any longer.
 */
export type TaskFailureKind = 'refused' | 'failed' | 'timeout' | 'memory' | 'died' | 'stopped';

export interface TaskFailure {
  readonly kind: TaskFailureKind;
  /** In the words of the handler; empty for failures of the process. */
  readonly message: string;
  /** Members that the handler adds. Plain data. */
  readonly detail: unknown;
  /** Nothing else but the task can be the reason. */
  readonly isCertain: boolean;
}

export type TaskAnswer = { readonly ok: true; readonly result: unknown } | ({ readonly ok: false } & TaskFailure);

export interface Task {
  readonly id: number;
  readonly request: unknown;
}

export interface TaskReply {
  readonly id: number;
  readonly answer: TaskAnswer;
  /** The process must end, and takes no further tasks: it holds much memory, or its state is unknown. */
  readonly isLast: boolean;
}

/** Thrown by handlers in the process, and by the pool in its parent. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  readonly kind: TaskFailureKind;
  readonly detail: unknown;
  readonly isCertain: boolean;
  /** In the process: it must be replaced. */
  readonly isLast: boolean;

  constructor(
    kind: TaskFailureKind,
    message: string,
    {
      detail = null,
      isCertain = kind === 'refused',
      isLast = kind !== 'refused',
    }: { readonly detail?: unknown; readonly isCertain?: boolean; readonly isLast?: boolean } = {},
  ) {
    super(message);
    this.kind = kind;
    this.detail = detail;
    this.isCertain = isCertain;
    this.isLast = isLast;
  }
}

interface ServeOptions {
  /** Memory of WebAssembly never shrinks: a process that holds more than this after a task is replaced. */
  readonly maxIdleBytes: number;
}

/** A process is replaced after so much processor time, long before its limit ends it: that would fail tasks. */
const MAX_PROCESSOR_SECONDS = 120;

/**
 * Runs in a bounded process: answers the tasks that its parent sends.
 *
 * @param handle errors: TaskError says what to answer; any other error is a failure of the kind `memory` or `failed`, after
 *   which the process is replaced
 */
export function serveTasks<Request, Result>(
  handle: (request: Request) => Promise<Result> | Result,
  { maxIdleBytes }: ServeOptions,
): void {
  const isWornOut = (): boolean => {
    const { user, system } = process.cpuUsage();
    return process.memoryUsage.rss() > maxIdleBytes || (user + system) / 1e6 > MAX_PROCESSOR_SECONDS;
  };
  const replyTo = async ({ id, request }: Task): Promise<TaskReply> => {
    try {
      const result = await handle(request as Request);
      return { id, answer: { ok: true, result }, isLast: isWornOut() };
    } catch (error) {
      const known = error instanceof TaskError ? error : new TaskError(lacksMemory(error) ? 'memory' : 'failed', '');
      const { kind, message, detail, isCertain, isLast } = known;
      return { id, answer: { ok: false, kind, message, detail, isCertain }, isLast };
    }
  };
  process.on('message', (task: Task) => {
    void replyTo(task).then((reply) => {
      process.send?.(reply);
      // Tasks load modules, and the signal that ends this process would leave them out of the cache.
      flushCompileCache();
    });
  });
  process.send?.('started');
  // The parent has died.
  process.on('disconnect', () => process.exit());
}

/** Whether an error of JavaScript, WebAssembly or a native library says that memory could not be allocated. */
export function lacksMemory(error: unknown): boolean {
  // WebAssembly throws these when its memory cannot grow.
  if (
    (error instanceof RangeError && !/call stack/.test(error.message)) ||
    (error instanceof Error && error.name === 'RuntimeError')
  )
    return true;
  return error instanceof Error && /memory|alloc/i.test(error.message);
}
