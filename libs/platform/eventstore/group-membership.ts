import { storeUnavailable } from '#libs/kernel/faults.ts';
import { admitText } from '#libs/kernel/text.ts';

import { encodeAcknowledgement, encodeParking } from './client/read-requests.ts';
import type { ReadItem, ResolvedEvent } from './client/read-responses.ts';
import { type MemberCall, openMember } from './client/reads.ts';
import type { EventStoreConnection } from './connection.ts';
import type { ConsumedItem, ConsumeOptions, Delivery } from './consumer-groups.ts';
import { EventPull, toStoredEvent } from './event-pull.ts';
import { MAX_REASON_LENGTH, type OpenMembership } from './group-server.ts';

/** Of one message. The clients of EventStoreDB for other languages refuse more than 2,000. */
const MAX_ACKNOWLEDGED = 1000;

/** One membership, from its start to its first failure. */
export class GroupMembership implements OpenMembership {
  readonly #connection: EventStoreConnection;
  readonly #signal: AbortSignal;
  readonly #livenessMs: number;
  readonly #call: Promise<MemberCall>;
  readonly #pull: EventPull<ReadItem>;
  /** Ids of the events that were acknowledged in this iteration of the event loop: one message acknowledges all of them. */
  readonly #acknowledged: string[] = [];

  constructor(
    connection: EventStoreConnection,
    name: string,
    { bufferSize, signal }: ConsumeOptions,
    livenessMs = 5000,
  ) {
    this.#connection = connection;
    this.#signal = signal;
    this.#livenessMs = livenessMs;
    this.#call = openMember(connection.client, name, bufferSize);
    this.#pull = new EventPull(this.#call, bufferSize, signal);
  }

  /** @throws the error that ended the subscription */
  async *items(): AsyncGenerator<ConsumedItem, void, undefined> {
    let isConfirmed = false;
    while (!this.#signal.aborted) {
      for (const item of this.#pull.take(1)) {
        if (item.kind === 'confirmation') {
          isConfirmed = true;
          yield { kind: 'joined' };
        }
        if (item.kind !== 'event') continue;
        const delivery = this.#deliveryOf(item);
        if (delivery) yield { kind: 'delivery', delivery };
        else this.#acknowledge(item);
      }
      if (this.#pull.ended) throw storeUnavailable('the event store', new Error('the server ended the subscription'));
      if (await this.#pull.wait(this.#livenessMs)) continue;
      // A group without new events and a dead server look the same from here.
      await this.#connection.head();
      if (!isConfirmed) throw storeUnavailable('the event store', new Error('the subscription was not confirmed'));
    }
  }

  close(): void {
    this.#sendAcknowledged();
    this.#pull.close();
  }

  /** Null for a foreign event: the server selects events by their types alone. */
  #deliveryOf(resolved: ResolvedEvent): Delivery | null {
    const event = toStoredEvent(resolved, this.#connection.foreign);
    if (!event || event.foreign !== undefined) return null;
    return {
      event,
      acknowledge: () => this.#acknowledge(resolved),
      park: (reason) => this.#send(encodeParking(idOf(resolved), admitText(reason, MAX_REASON_LENGTH))),
    };
  }

  #acknowledge(resolved: ResolvedEvent): void {
    if (this.#acknowledged.push(idOf(resolved)) === 1) setImmediate(() => this.#sendAcknowledged());
  }

  #sendAcknowledged(): void {
    while (this.#acknowledged.length > 0) {
      this.#send(encodeAcknowledgement(this.#acknowledged.splice(0, MAX_ACKNOWLEDGED)));
    }
  }

  /** If an answer is lost, the event is delivered again. A failed write ends the membership. */
  #send(answer: Buffer): void {
    void this.#call.then(
      (call) => call.write(answer),
      () => undefined,
    );
  }
}

/** By which the server knows a delivery. */
function idOf({ event, link }: ResolvedEvent): string {
  return (link ?? event)?.id ?? '';
}
