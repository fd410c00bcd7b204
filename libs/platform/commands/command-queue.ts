import { Fault } from '#libs/kernel/faults.ts';

/**
 * Runs a batch: takes as many of `waiting` as it can at once and returns the others. It settles each one
 * that it took; if it throws, it has settled none.
 */
export type RunBatch<Waiting> = (id: string, waiting: readonly Waiting[]) => Promise<readonly Waiting[]>;

/**
 * Lets the commands of one entity wait for each other, and hands those that wait together over as one
 * batch, so that a hot entity costs one append for many commands rather than a queue of conflicts.
 *
 * Guarantees: one batch of an entity at a time, in order of arrival; bounded.
 */
export class CommandQueue<Waiting extends { reject(error: unknown): void }> {
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #runBatch: RunBatch<Waiting>;
  readonly #limits: { readonly maxWaiting: number; readonly maxBatch: number };

  constructor(runBatch: RunBatch<Waiting>, limits: { readonly maxWaiting: number; readonly maxBatch: number }) {
    this.#runBatch = runBatch;
    this.#limits = limits;
  }

  add(id: string, command: Waiting): void {
    const queue = this.#waiting.get(id);
    if (queue === undefined) {
      this.#waiting.set(id, [command]);
      void this.#drain(id);
    } else if (queue.length >= this.#limits.maxWaiting) {
      command.reject(new Fault('overloaded', 'Too many commands wait for this entity', { retryAfterSeconds: 1 }));
    } else {
      queue.push(command);
    }
  }

  async #drain(id: string): Promise<void> {
    // One turn of the event loop: what arrived together is decided together.
    await new Promise((resolve) => setImmediate(resolve));
    const queue = this.#waiting.get(id) ?? [];
    while (queue.length > 0) {
      const batch = queue.splice(0, this.#limits.maxBatch);
      try {
        queue.unshift(...(await this.#runBatch(id, batch)));
      } catch (error) {
        // Whatever waits behind would run into the same fault, each after its own deadline: tell all now.
        for (const command of [...batch, ...queue.splice(0)]) command.reject(error);
      }
    }
    this.#waiting.delete(id);
  }
}
