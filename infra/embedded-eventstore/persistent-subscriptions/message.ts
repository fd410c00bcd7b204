// An event in delivery by a group.
import { parseLink, type StoredEvent } from '../log/stored-event.ts';

export type Message = {
  /** The id for acknowledgements: that of the link, else of the event. */
  id: string;
  /** Undefined for a link whose target does not exist. */
  event: StoredEvent | undefined;
  link: StoredEvent | undefined;
  /** Deliveries before the current one. */
  retryCount: number;
} & ({ kind: 'read'; /** Revision or position. */ offset: number } | { kind: 'replayed'; parkedRevision: number });

/** The stream of the event, also when a link to it cannot be resolved. */
export function streamOf({ event, link }: Message): string {
  if (event && !event.isLink) return event.stream;
  const record = event ?? link;
  return record ? (parseLink(record.data)?.stream ?? record.stream) : '';
}

/** The correlation id of the event's metadata, else its stream. */
export function correlationOf(message: Message): string {
  try {
    const metadata: unknown = JSON.parse(message.event?.metadata.toString() ?? '');
    if (typeof metadata === 'object' && metadata !== null && '$correlationId' in metadata) {
      return String(metadata.$correlationId);
    }
  } catch {
    // Metadata of others may be any bytes.
  }
  return streamOf(message);
}

/** Inserts a message by its offset; replayed messages come last. */
export function insertInOrder(messages: Message[], message: Message): void {
  const offset = orderOf(message);
  messages.splice(messages.findLastIndex((other) => orderOf(other) <= offset) + 1, 0, message);
}

/** Offers each message in order until `offer` returns `stop`; returns the messages that were not taken. */
export function offerInOrder(messages: Message[], offer: (message: Message) => 'taken' | 'kept' | 'stop'): Message[] {
  const kept: Message[] = [];
  for (const [at, message] of messages.entries()) {
    const answer = offer(message);
    if (answer === 'stop') return [...kept, ...messages.slice(at)];
    if (answer === 'kept') kept.push(message);
  }
  return kept;
}

function orderOf(message: Message): number {
  return message.kind === 'read' ? message.offset : Infinity;
}
