import { Fault } from '#libs/kernel/faults.ts';
import { FairSemaphore, type FairSemaphoreOptions, QueueFull, within } from '#libs/platform/lifecycle/index.ts';

import { UnusableIndex } from './thread-client.ts';

/** How long a query waits for an index that is being built (the build continues meanwhile), and then for its turn. */
const MAX_WAIT_MS = 4_000;
/** How often an index that was lost, with its thread or by a damaged file, is built again for one query. */
const ATTEMPTS = 3;

interface IndexQueriesOptions extends FairSemaphoreOptions {
  /** How long a query waits for its turn. Default: 4,000. */
  readonly maxWaitMs?: number | undefined;
  /** Called each time that an index is built again. */
  readonly onRebuilt?: () => void;
}

/** Queries of indexes, which are brought up to date first. Groups of queries take turns; a query that has begun is answered. */
export class IndexQueries {
  readonly #turns: FairSemaphore;
  readonly #maxWaitMs: number;
  readonly #onRebuilt: (() => void) | undefined;

  constructor({ maxWaitMs = MAX_WAIT_MS, onRebuilt, ...queue }: IndexQueriesOptions) {
    this.#turns = new FairSemaphore(queue);
    this.#maxWaitMs = maxWaitMs;
    this.#onRebuilt = onRebuilt;
  }

  /**
   * @param catchUp brings the index up to date; it may end early once its signal aborts, because the query no longer waits
   * @param ask asks the index
   * @throws `Fault` `not_caught_up` while the index is being built, `overloaded`, `store_unavailable`
   */
  async run<T>(group: string, catchUp: (signal: AbortSignal) => Promise<void>, ask: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const wait = new AbortController();
      try {
        await within(MAX_WAIT_MS, catchUp(wait.signal), indexBeingBuilt).finally(() => wait.abort());
        return await this.#inTurn(group, ask);
      } catch (error) {
        if (!(error instanceof UnusableIndex)) throw error;
        this.#onRebuilt?.();
        if (attempt === ATTEMPTS) throw indexUnavailable(error);
      }
    }
  }

  async #inTurn<T>(group: string, ask: () => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(this.#maxWaitMs);
    try {
      return await this.#turns.run(ask, { group, signal });
    } catch (error) {
      if (!(error instanceof QueueFull) && error !== signal.reason) throw error;
      throw new Fault('overloaded', 'Too many searches are waiting', { cause: error, retryAfterSeconds: 1 });
    }
  }
}

export function indexBeingBuilt(): Fault {
  return new Fault('not_caught_up', 'The search index is being built', { retryAfterSeconds: 2 });
}

export function indexUnavailable(cause: unknown): Fault {
  return new Fault('store_unavailable', 'The search index is unavailable', { cause, retryAfterSeconds: 2 });
}
