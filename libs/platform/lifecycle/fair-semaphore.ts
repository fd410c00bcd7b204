/** A permit is not to be had: so many wait already, of the same group or of all of them. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
  readonly scope: 'group' | 'all';

  constructor(scope: 'group' | 'all') {
    super(`too many wait (${scope})`);
    this.scope = scope;
  }
}

export interface FairSemaphoreOptions {
  /** Work that runs at the same time. */
  readonly permits: number;
  /** Work that may wait, in one group and in all of them. Default: without a bound. */
  readonly maxWaitingInGroup?: number;
  readonly maxWaiting?: number;
}

export interface Turn {
  /** Groups take turns, so that one with much work delays the others by no more than one piece of it. */
  readonly group?: string;
  /** Gives up the wait; work that runs has to look at the signal itself. */
  readonly signal?: AbortSignal;
}

/** Bounded concurrency: work beyond the permits waits, first come first served within its group. */
export class FairSemaphore {
  readonly #maxWaitingInGroup: number;
  readonly #maxWaiting: number;
  #free: number;
  #waiting = 0;
  /** Groups with waiting work, in the order of their turns. */
  readonly #groups = new Map<string, Set<() => void>>();

  constructor({ permits, maxWaitingInGroup = Infinity, maxWaiting = Infinity }: FairSemaphoreOptions) {
    this.#free = permits;
    this.#maxWaitingInGroup = maxWaitingInGroup;
    this.#maxWaiting = maxWaiting;
  }

  /** Whether work would run at once. */
  get isFree(): boolean {
    return this.#free > 0;
  }

  /**
   * Starts `work` before it returns where a permit is free.
   *
   * @throws QueueFull; the reason of the signal once that has aborted
   */
  async run<T>(work: () => Promise<T>, { group = '', signal }: Turn = {}): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(group, signal);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #wait(group: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting >= this.#maxWaiting) throw new QueueFull('all');
    const queue = this.#groups.get(group) ?? new Set();
    if (queue.size >= this.#maxWaitingInGroup) throw new QueueFull('group');
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting -= 1;
        queue.delete(start);
        if (queue.size === 0) this.#groups.delete(group);
        signal?.removeEventListener('abort', giveUp);
      };
      const start = (): void => {
        leave();
        resolve();
      };
      const giveUp = (): void => {
        leave();
        reject(signal?.reason);
      };
      queue.add(start);
      this.#groups.set(group, queue);
      this.#waiting += 1;
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The permit goes to the next group in turn, so that no newcomer overtakes it. */
  #release(): void {
    for (const [group, queue] of this.#groups) {
      for (const start of queue) {
        start();
        // Behind the others: the next permit is for another group.
        if (this.#groups.delete(group)) this.#groups.set(group, queue);
        return;
      }
    }
    this.#free += 1;
  }
}
