/** The queue for permits is full: of this group, or of all groups together. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
  readonly scope: 'group' | 'all';

  constructor(scope: 'group' | 'all') {
    super(`the queue is full (${scope})`);
    this.scope = scope;
  }
}

export interface FairSemaphoreOptions {
  readonly permits: number;
  /** Permits that one group may have, also while no other group needs the rest. Default: all. */
  readonly permitsOfGroup?: number;
  /** Queued work, per group and in total. Default: unbounded. */
  readonly maxWaitingInGroup?: number;
  readonly maxWaiting?: number;
}

/** How work waits for a permit. */
export interface Wait {
  /** Groups take turns, so a group with much work delays another by at most one piece of work per permit. */
  readonly group?: string;
  /** Cancels the wait. Running work must observe the signal itself. */
  readonly signal?: AbortSignal;
}

/** Bounded concurrency: work beyond the permits is queued, first in first out within its group. */
export class FairSemaphore {
  readonly #permitsOfGroup: number;
  readonly #maxWaitingInGroup: number;
  readonly #maxWaiting: number;
  #free: number;
  #waiting = 0;
  /** Groups with queued work, in the order in which they get permits. */
  readonly #groups = new Map<string, Set<() => void>>();
  /** Permits of each group that has any. */
  readonly #taken = new Map<string, number>();

  constructor({
    permits,
    permitsOfGroup = permits,
    maxWaitingInGroup = Infinity,
    maxWaiting = Infinity,
  }: FairSemaphoreOptions) {
    this.#free = permits;
    this.#permitsOfGroup = permitsOfGroup;
    this.#maxWaitingInGroup = maxWaitingInGroup;
    this.#maxWaiting = maxWaiting;
  }

  /** Whether work would start at once. */
  get isFree(): boolean {
    return this.#free > 0;
  }

  /**
   * Starts `work` synchronously if a permit is free.
   *
   * @throws QueueFull; the reason of the signal once that has aborted
   */
  async run<T>(work: () => Promise<T>, { group = '', signal }: Wait = {}): Promise<T> {
    signal?.throwIfAborted();
    if (this.#isFreeFor(group)) this.#take(group);
    else await this.#wait(group, signal);
    try {
      return await work();
    } finally {
      this.#release(group);
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

  #isFreeFor(group: string): boolean {
    return this.#free > 0 && (this.#taken.get(group) ?? 0) < this.#permitsOfGroup;
  }

  #take(group: string): void {
    this.#free -= 1;
    this.#taken.set(group, (this.#taken.get(group) ?? 0) + 1);
  }

  /** Passes the permit to the next group that may have it, so that new work cannot overtake queued work. */
  #release(group: string): void {
    this.#free += 1;
    const left = (this.#taken.get(group) ?? 1) - 1;
    if (left === 0) this.#taken.delete(group);
    else this.#taken.set(group, left);
    for (const [next, queue] of this.#groups) {
      if (!this.#isFreeFor(next)) continue;
      for (const start of queue) {
        this.#take(next);
        start();
        // To the end of the order: the next permit goes to another group.
        if (this.#groups.delete(next)) this.#groups.set(next, queue);
        return;
      }
    }
  }
}
