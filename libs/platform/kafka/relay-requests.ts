import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { PublicMessages } from '#libs/platform/live/index.ts';
import type { LogMessages } from './log-message.ts';
import { partitionOf } from './kafkajs/index.ts';
import { MAX_REQUEST_LENGTH, type Outgoing } from './publisher.ts';
import type { LogTopics } from './topics.ts';

export interface Encoders {
  readonly messages: LogMessages;
  readonly publicMessages?: PublicMessages | undefined;
  readonly topics: LogTopics;
}

/** The messages of an event, in the topics that are wanted. */
export function messagesOf(
  { messages, publicMessages, topics }: Encoders,
  event: StoredEvent,
  isWanted: (topic: string) => boolean,
  partitionsOf: (topic: string) => number,
): readonly Outgoing[] {
  const outgoing: Outgoing[] = [];
  const add = (topic: string, message: Outgoing['message']): void => {
    outgoing.push({ topic, partition: partitionOf(event.stream, partitionsOf(topic)), message, event });
  };
  if (isWanted(topics.log) && event.foreign === undefined) add(topics.log, messages.encode(event));
  const publicMessage = isWanted(topics.events) ? (publicMessages?.encode(event) ?? null) : null;
  if (publicMessage !== null) add(topics.events, publicMessage);
  return outgoing;
}

interface Request {
  readonly outgoing: readonly Outgoing[];
  readonly last: StoredEvent;
}

/** Requests of at most {@link MAX_REQUEST_LENGTH}, or of one event; without messages where all events are foreign. */
export function* requestsOf(
  events: readonly StoredEvent[],
  encode: (event: StoredEvent) => readonly Outgoing[],
): Generator<Request> {
  let outgoing: Outgoing[] = [];
  let length = 0;
  let last: StoredEvent | null = null;
  for (const event of events) {
    const messages = encode(event);
    const own = messages.reduce((sum, { message }) => sum + message.value.length, 0);
    if (last !== null && length + own > MAX_REQUEST_LENGTH) {
      yield { outgoing, last };
      outgoing = [];
      length = 0;
    }
    outgoing.push(...messages);
    length += own;
    last = event;
  }
  if (last !== null) yield { outgoing, last };
}
