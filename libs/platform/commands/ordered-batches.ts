import type { Answer } from './decide-batch.ts';

/** A batch that the event store has acknowledged. */
interface AppendedBatch {
  /** Applies its events to the read model; does not reject. */
  readonly apply: () => Promise<void>;
  /** Settle its commands. */
  readonly answers: readonly Answer[];
  /** How long its append took. */
  readonly appendMs: number;
}

/** Half of them are a batch that is worth an append of its own. */
const MIN_TO_DIVIDE = 32;

/**
 * Applies the batches of each stream one after another, while the next ones are decided and appended.
 *
 * Guarantees: the commands of a stream are settled in the order of their batches, each after its batch was applied. At most
 * one batch of a stream waits to be applied while another one is.
 */
export class OrderedBatches {
  /** By stream, until its newest batch is applied and the commands of that are settled. */
  readonly #newest = new Map<string, Promise<void>>();
  #isDividing = false;

  /** Resolves when all batches of the stream so far are applied; undefined if they are. */
  pending(stream: string): Promise<void> | undefined {
    return this.#newest.get(stream);
  }

  /** Applies a batch after those before it. Resolves once these are applied, so that the next batch may be decided. */
  async add(stream: string, { apply, answers, appendMs }: AppendedBatch): Promise<void> {
    const before = this.#newest.get(stream) ?? Promise.resolve();
    const applied = before.then(async () => {
      const startMs = performance.now();
      const isApplied = apply();
      for (const answer of answers) answer(isApplied);
      await isApplied;
      if (answers.length >= MIN_TO_DIVIDE / 2) this.#isDividing = performance.now() - startMs > appendMs / 2;
      if (this.#newest.get(stream) === applied) this.#newest.delete(stream);
    });
    this.#newest.set(stream, applied);
    await before;
  }

  /**
   * How many of the waiting commands the next batch takes. Writers that wait for answers send their next commands
   * together, so all of them would wait while their batch is applied, and nothing would be appended meanwhile. Then half
   * of them make a batch, and the other half the next one, if to apply takes long enough to be worth a further append.
   */
  sizeOf(stream: string, waiting: number): number {
    const divides = this.#isDividing && waiting >= MIN_TO_DIVIDE && !this.#newest.has(stream);
    return divides ? Math.ceil(waiting / 2) : waiting;
  }
}
