import { Fault } from '#libs/kernel/faults.ts';

const MAX_BATCH = 200;
/** Commands that may wait for one entity before the next is refused as `overloaded`. */
const MAX_WAITING = 1_000;

/**
 * Queues the commands of each entity and runs them in batches, so that many concurrent commands on one entity cost one
 * append, not a conflict each.
 *
 * Guarantees: one batch of an entity at a time, in order of arrival; bounded queues.
 */
export class CommandQueue<Waiting extends { reject(error: unknown): void }> {
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #runBatch: (waiting: readonly Waiting[]) => Promise<readonly Waiting[]>;

  /**
   * @param runBatch runs as many of the waiting commands as fit into one batch, and returns the others. It settles those
   *   that it runs, perhaps later; if it throws, it settles none
   */
  constructor(runBatch: (waiting: readonly Waiting[]) => Promise<readonly Waiting[]>) {
    this.#runBatch = runBatch;
  }

  add(id: string, command: Waiting): void {
    const queue = this.#waiting.get(id);
    if (queue === undefined) {
      this.#waiting.set(id, [command]);
      void this.#drain(id);
    } else if (queue.length >= MAX_WAITING) {
      command.reject(new Fault('overloaded', 'Too many commands wait for this entity', { retryAfterSeconds: 1 }));
    } else {
      queue.push(command);
    }
  }

  async #drain(id: string): Promise<void> {
    // Commands that arrive in one iteration of the event loop form one batch.
    await new Promise((resolve) => setImmediate(resolve));
    const queue = this.#waiting.get(id) ?? [];
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_BATCH);
      try {
        queue.unshift(...(await this.#runBatch(batch)));
      } catch (error) {
        // The waiting commands would fail in the same way, each after its own deadline.
        for (const command of [...batch, ...queue.splice(0)]) command.reject(error);
      }
    }
    this.#waiting.delete(id);
  }
}
