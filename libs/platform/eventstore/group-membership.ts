import {
  PARK,
  type PersistentSubscriptionToAll,
  type PersistentSubscriptionToAllResolvedEvent,
} from '@eventstore/db-client';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { admitText } from '#libs/kernel/text.ts';

import type { EventStoreConnection } from './connection.ts';
import type { ConsumedItem, ConsumeOptions, Delivery } from './consumer-groups.ts';
import { EventPull, toStoredEvent } from './event-pull.ts';
import { MAX_REASON_LENGTH, type OpenMembership } from './group-server.ts';

/** Of one message. The clients of EventStoreDB for other languages refuse more than 2,000. */
const MAX_ACKNOWLEDGED = 1000;

/** One subscription of the client, from its start to its first failure. */
export class GroupMembership implements OpenMembership {
  readonly #connection: EventStoreConnection;
  readonly #signal: AbortSignal;
  readonly #livenessMs: number;
  readonly #subscription: PersistentSubscriptionToAll;
  readonly #pull: EventPull<PersistentSubscriptionToAllResolvedEvent>;
  /** Events that were acknowledged in this iteration of the event loop: one message acknowledges all of them. */
  readonly #acknowledged: PersistentSubscriptionToAllResolvedEvent[] = [];
  #isConfirmed = false;
  #isOpen = true;

  constructor(
    connection: EventStoreConnection,
    name: string,
    { bufferSize, signal }: ConsumeOptions,
    livenessMs = 5000,
  ) {
    this.#connection = connection;
    this.#signal = signal;
    this.#livenessMs = livenessMs;
    this.#subscription = connection.client.subscribeToPersistentSubscriptionToAll(
      name,
      { bufferSize },
      { highWaterMark: bufferSize },
    );
    this.#pull = new EventPull(this.#subscription, () => this.#subscription.unsubscribe(), signal);
    this.#subscription.on('confirmation', () => {
      this.#isConfirmed = true;
      this.#pull.notify();
    });
  }

  /** @throws the error that ended the subscription */
  async *items(): AsyncGenerator<ConsumedItem, void, undefined> {
    let hasJoined = false;
    while (!this.#signal.aborted) {
      if (this.#isConfirmed && !hasJoined) {
        hasJoined = true;
        yield { kind: 'joined' };
      }
      for (const resolved of this.#pull.take(1)) {
        const delivery = this.#deliveryOf(resolved);
        if (delivery) yield { kind: 'delivery', delivery };
        else this.#acknowledge(resolved);
      }
      if (this.#pull.ended) throw storeUnavailable('event store', new Error('the server ended the subscription'));
      if (await this.#pull.wait(this.#livenessMs)) continue;
      // A group without new events and a dead server look the same from here.
      await this.#connection.head();
      if (!this.#isConfirmed) throw storeUnavailable('event store', new Error('the subscription was not confirmed'));
    }
  }

  close(): void {
    this.#sendAcknowledged();
    this.#isOpen = false;
    this.#pull.close();
  }

  /** Null for a foreign event: the server selects events by their types alone. */
  #deliveryOf(resolved: PersistentSubscriptionToAllResolvedEvent): Delivery | null {
    const event = toStoredEvent(resolved, this.#connection.foreign);
    if (!event || event.foreign !== undefined) return null;
    const subscription = this.#subscription;
    return {
      event,
      acknowledge: () => this.#acknowledge(resolved),
      park: (reason) => this.#answer(subscription.nack(PARK, admitText(reason, MAX_REASON_LENGTH), resolved)),
    };
  }

  #acknowledge(resolved: PersistentSubscriptionToAllResolvedEvent): void {
    if (this.#acknowledged.push(resolved) === 1) setImmediate(() => this.#sendAcknowledged());
  }

  #sendAcknowledged(): void {
    while (this.#acknowledged.length > 0) {
      this.#answer(this.#subscription.ack(...this.#acknowledged.splice(0, MAX_ACKNOWLEDGED)));
    }
  }

  /** If an answer is lost, the event is delivered again. */
  #answer(answer: Promise<void>): void {
    answer.catch((error: unknown) => {
      if (this.#isOpen) this.#subscription.destroy(error instanceof Error ? error : undefined);
    });
  }
}
