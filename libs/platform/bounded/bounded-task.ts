/** Messages between the parent and its bounded process. Plain data. */

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
