import type { FeedItem, StoredEvent } from '#libs/platform/eventstore/index.ts';

type Events = readonly [StoredEvent, ...StoredEvent[]];

/** Events that wait to be taken, and then for the next item to be asked for. */
export interface Offer {
  /** Whether they were acknowledged, or nobody will any more; waits for it, but not longer than `ms`. */
  isDone(ms: number): Promise<boolean>;
  /** Takes them back if nobody has taken them yet. */
  withdraw(): void;
}

interface Waiting {
  readonly events: Events;
  readonly done: PromiseWithResolvers<void>;
}

/** Between kafkajs, which pushes, and a feed, which is pulled: asking for the next item acknowledges the one before. */
export class Handover {
  readonly #offers: Waiting[] = [];
  #taken: Waiting | null = null;
  #caughtUp = false;
  #closed = false;
  #failure: { readonly error: unknown } | null = null;
  #change = Promise.withResolvers<void>();

  get isClosed(): boolean {
    return this.#closed;
  }

  offer(events: Events): Offer {
    const waiting: Waiting = { events, done: Promise.withResolvers<void>() };
    let isDone = this.#closed;
    void waiting.done.promise.then(() => (isDone = true));
    if (!this.#closed) this.#offers.push(waiting);
    this.#changed();
    return {
      async isDone(ms) {
        if (isDone) return true;
        const { promise: late, resolve } = Promise.withResolvers<void>();
        const timer = setTimeout(resolve, ms);
        await Promise.race([waiting.done.promise, late]);
        clearTimeout(timer);
        return isDone;
      },
      withdraw: () => {
        const at = this.#offers.indexOf(waiting);
        if (at >= 0) this.#offers.splice(at, 1);
      },
    };
  }

  tellCaughtUp(): void {
    this.#caughtUp = true;
    this.#changed();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#changed();
  }

  close(): void {
    this.#closed = true;
    for (const { done } of this.#offers.splice(0)) done.resolve();
    this.#taken?.done.resolve();
    this.#changed();
  }

  /** Null when closed. @throws what it was failed with */
  async next(): Promise<FeedItem | null> {
    this.#taken?.done.resolve();
    this.#taken = null;
    for (;;) {
      if (this.#closed) return null;
      if (this.#failure !== null) throw this.#failure.error;
      const offer = this.#offers.shift();
      if (offer !== undefined) {
        this.#taken = offer;
        return { kind: 'events', events: offer.events };
      }
      if (this.#caughtUp) {
        this.#caughtUp = false;
        return { kind: 'caught-up' };
      }
      await this.#change.promise;
    }
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}
