// One event on its way through a group.
import { parseLink } from '../log/stored-event.ts';
import type { StoredEvent } from '../log/stored-event.ts';

export type Message = {
  /** By which it is acknowledged: the id of the link, else of the event. */
  id: string;
  /** Undefined for a link whose target does not exist. */
  event: StoredEvent | undefined;
  link: StoredEvent | undefined;
  /** Deliveries before the current one. */
  retryCount: number;
} & ({ kind: 'read'; /** Revision or position. */ offset: number } | { kind: 'replayed'; parkedRevision: number });

/** The stream of the event that is meant, also when a link to it cannot be resolved. */
export function streamOf({ event, link }: Message): string {
  if (event && !event.isLink) return event.stream;
  const record = event ?? link;
  return record ? (parseLink(record.data)?.stream ?? record.stream) : '';
}

/** Unhandled messages that wait for their next delivery, oldest first; replayed ones come last. */
export class RetryQueue {
  #messages: Message[] = [];

  get length(): number {
    return this.#messages.length;
  }

  add(message: Message): void {
    const offset = orderOf(message);
    let at = this.#messages.length;
    while (at > 0 && orderOf(this.#messages[at - 1]) > offset) at--;
    this.#messages.splice(at, 0, message);
  }

  /** Offers each message in order; those that are taken are removed. Ends when `offer` says so. */
  offerAll(offer: (message: Message) => 'taken' | 'kept' | 'stop'): void {
    this.#messages = offerInOrder(this.#messages, offer);
  }

  [Symbol.iterator](): Iterator<Message> {
    return this.#messages[Symbol.iterator]();
  }
}

/** Like `RetryQueue.offerAll`, on a plain list; returns what is left. */
export function offerInOrder(messages: Message[], offer: (message: Message) => 'taken' | 'kept' | 'stop'): Message[] {
  const kept: Message[] = [];
  for (const [at, message] of messages.entries()) {
    const answer = offer(message);
    if (answer === 'stop') return [...kept, ...messages.slice(at)];
    if (answer === 'kept') kept.push(message);
  }
  return kept;
}

function orderOf(message: Message | undefined): number {
  return message?.kind === 'read' ? message.offset : Infinity;
}
