import type { Message } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import {
  comparePositions,
  type EventIdentity,
  identityOf,
  type LogFeed,
  type LogStart,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import type { KafkaConnection, Undelivered } from './connection.ts';
import { describeError } from './kafka-errors.ts';
import { earliest, resumingTogether, type RelayCheckpoint } from './relay-checkpoint.ts';

/** A message of an event for one topic. */
export interface Outgoing {
  readonly topic: string;
  readonly partition: number;
  readonly message: Message & { readonly value: string };
  readonly event: StoredEvent;
}

/** A partition that Kafka refuses a message for. Its later messages wait, so that its streams stay in order. */
export interface RefusingPartition {
  readonly topic: string;
  readonly partition: number;
  /** All messages of the partition up to this position of the log are stored. */
  readonly after: LogStart;
  /** The refused event, as `type stream@revision (id)`; null until a relay that has taken over has retried it. */
  readonly event: string | null;
  readonly cause: string;
  readonly sinceMs: number;
}

export interface PublisherParts {
  readonly feed: LogFeed;
  readonly kafka: KafkaConnection;
  /** The messages of an event, in the topics that `isWanted` accepts. */
  readonly encode: (event: StoredEvent, isWanted: (topic: string) => boolean) => readonly Outgoing[];
  readonly partitionsOf: (topic: string) => number;
  /** Called when Kafka has acknowledged messages. */
  readonly onAcknowledged: (messages: readonly Outgoing[]) => void;
  /** Called for each refusal, also of the same message again. */
  readonly onRefused: (refusal: RefusingPartition) => void;
}

/** Size of one request. Larger requests only fill the broker's memory. */
export const MAX_REQUEST_LENGTH = 512 * 1024;
/** More than one request usually holds, so that the next events are read while a request is sent. */
export const MAX_BATCH = 1_000;
/** Limits the size of the checkpoint: other applications may give streams longer names. */
const MAX_STREAM_NAME = 500;

/**
 * Publishes the events of the log in their order, one request at a time.
 *
 * A partition that refuses a message is set aside, and its later messages with it, while all other partitions continue.
 * `retry` reads the log again for these partitions, until they have everything that the others have.
 *
 * Guarantees: the messages of a partition are first stored in the order of the log; a message that Kafka has acknowledged
 * is not sent again by this publisher.
 */
export class Publisher {
  readonly #parts: PublisherParts;
  readonly #refusing = new Map<string, RefusingPartition>();
  /** The last event of the request that was started last: `retry` delivers up to it, and later requests what follows. */
  #started: GlobalPosition | null;
  #position: GlobalPosition | null;
  #sent: GlobalPosition | null;
  #last: EventIdentity | null;

  constructor(from: RelayCheckpoint, parts: PublisherParts) {
    this.#parts = parts;
    this.#position = from.position;
    this.#sent = this.#started = from.sent;
    this.#last = from.last;
    for (const [topic, refusing] of from.refusing) {
      // Partitions of another count hold other streams.
      const isSame = refusing.partitions === parts.partitionsOf(topic);
      const all = Array.from({ length: parts.partitionsOf(topic) }, (_, partition) => partition);
      const least = earliest([...resumingTogether(refusing).after.values()]);
      const after = isSame ? refusing.after : new Map(all.map((partition) => [partition, least]));
      for (const [partition, start] of after) {
        const one = { topic, partition, after: start, event: null, cause: 'refused before', sinceMs: Date.now() };
        this.#refusing.set(keyOf(one), one);
      }
    }
  }

  get refusing(): readonly RefusingPartition[] {
    return [...this.#refusing.values()];
  }

  get checkpoint(): RelayCheckpoint {
    const topics = new Map<string, { partitions: number; after: Map<number, LogStart> }>();
    for (const { topic, partition, after } of this.#refusing.values()) {
      const known = topics.get(topic) ?? { partitions: this.#parts.partitionsOf(topic), after: new Map() };
      topics.set(topic, known);
      known.after.set(partition, after);
    }
    return { position: this.#position, sent: this.#sent, last: this.#last, refusing: topics };
  }

  /** Kafka has acknowledged all messages of all partitions up to it. */
  get position(): GlobalPosition | null {
    if (this.#refusing.size === 0) return this.#position;
    const least = earliest(this.refusing.map(({ after }) => after));
    return least === 'start' ? null : least;
  }

  /** Kafka has acknowledged all messages of the partition up to it. */
  positionOf(topic: string, partition: number): GlobalPosition | null {
    const after = this.#refusing.get(keyOf({ topic, partition }))?.after ?? this.#position;
    return after === 'start' ? null : after;
  }

  /** The messages of an event in all topics. */
  encode(event: StoredEvent): readonly Outgoing[] {
    return this.#parts.encode(event, () => true);
  }

  /** The log has no events to publish between the last request and `position`. */
  reached(position: GlobalPosition): void {
    this.#position = position;
  }

  /**
   * Sends a request. Resolves when each partition has acknowledged its messages, or is set aside.
   *
   * @param last the last event of the request
   * @throws Fault if no broker has answered
   */
  async publish(request: readonly Outgoing[], last: StoredEvent): Promise<void> {
    const since = this.#position ?? 'start';
    const sending = request.filter((one) => !this.#refusing.has(keyOf(one)));
    this.#started = last.position;
    await this.#deliver(sending, () => since, { mayBeAway: false });
    this.#position = this.#sent = last.position;
    // Other applications may delete their events.
    if (last.position !== null && last.foreign === undefined && last.stream.length <= MAX_STREAM_NAME)
      this.#last = identityOf(last);
  }

  /**
   * Tries to deliver what the refusing partitions lack, up to what the others have. Ends when each partition has caught
   * up, and continues with the others, or has refused again.
   *
   * @returns whether any has advanced
   */
  async retry(signal: AbortSignal): Promise<boolean> {
    const before = new Map([...this.#refusing].map(([key, { after }]) => [key, after]));
    await this.#retry(signal);
    return [...before].some(([key, after]) => this.#refusing.get(key)?.after !== after);
  }

  async #retry(signal: AbortSignal): Promise<void> {
    // Partitions that begin to refuse meanwhile may resume before the events that this reads next.
    const keys = new Set(this.#refusing.keys());
    const trying = () => this.refusing.filter((one) => keys.has(keyOf(one)));
    const from = earliest(this.refusing.map(({ after }) => after));
    const items = this.#parts.feed.subscribe({ from, streamPrefixes: 'all', signal, maxBatch: MAX_BATCH });
    for await (const item of items) {
      if (item.kind !== 'events') continue;
      for (let rest: readonly StoredEvent[] = item.events; rest.length > 0 && trying().length > 0;) {
        const due = firstRequest(rest.filter(({ position }) => !isAfter(position, this.#started)));
        rest = rest.slice(due.length);
        if (due.length > 0) for (const key of await this.#redeliver(due, trying())) keys.delete(key);
        // The next event belongs to a later request, which includes these partitions from now on.
        if (due.length === 0 || !isAfter(this.#started, due.at(-1)?.position ?? null)) {
          for (const one of trying()) {
            this.#refusing.delete(keyOf(one));
            keys.delete(keyOf(one));
          }
        }
      }
      if (trying().length === 0) return;
    }
  }

  /** Delivers what partitions lack of these events. @returns the partitions that refuse again */
  async #redeliver(events: readonly StoredEvent[], trying: readonly RefusingPartition[]): Promise<readonly string[]> {
    const topics = new Set(trying.map(({ topic }) => topic));
    const starts = new Map(trying.map((one) => [keyOf(one), one.after]));
    const outgoing = events.flatMap((event) => this.#parts.encode(event, (topic) => topics.has(topic)));
    const missing = outgoing.filter((one) => isAfterStart(one.event.position, starts.get(keyOf(one))));
    const refused = await this.#deliver(missing, (one) => starts.get(keyOf(one)) ?? 'start', { mayBeAway: true });
    const reached = events.at(-1)?.position ?? null;
    for (const one of trying) {
      if (reached === null || refused.includes(keyOf(one)) || !isAfterStart(reached, one.after)) continue;
      this.#refusing.set(keyOf(one), { ...one, after: reached });
    }
    return refused;
  }

  /**
   * Sends messages, and sets aside the partitions that refuse one.
   *
   * @returns these partitions
   * @throws Fault if no broker has answered, unless brokers `mayBeAway`
   */
  async #deliver(
    outgoing: readonly Outgoing[],
    sinceOf: (first: Outgoing) => LogStart,
    { mayBeAway }: { readonly mayBeAway: boolean },
  ): Promise<readonly string[]> {
    const messagesOf = (list: readonly Outgoing[]): readonly Message[] => list.map(({ message }) => message);
    const byTopic = [...Map.groupBy(outgoing, ({ topic }) => topic)];
    const undelivered = await Promise.all(
      byTopic.map(([topic, list]) => this.#parts.kafka.deliver(topic, messagesOf(list))),
    );
    const failures = new Map(undelivered.flat().map((one) => [one.message, one]));
    this.#acknowledged(outgoing.filter(({ message }) => !failures.has(message)));
    const [failure] = failures.values();
    if (failure === undefined) return [];
    const isAway = failures.size === outgoing.length && [...failures.values()].every(({ isAnswered }) => !isAnswered);
    if (isAway && !mayBeAway) throw failure.error;
    const refused = await Promise.all(
      [...Map.groupBy(outgoing, keyOf)].map(async ([key, list]) => {
        const [first] = list;
        const isRefused = first !== undefined && (await this.#findRefused(list, failures, sinceOf(first)));
        return isRefused ? [key] : [];
      }),
    );
    return refused.flat();
  }

  /** Sends the failed messages of a partition one at a time, up to the one that is refused. @returns whether one is */
  async #findRefused(
    list: readonly Outgoing[],
    failures: ReadonlyMap<Message, Undelivered>,
    since: LogStart,
  ): Promise<boolean> {
    let after = since;
    for (const one of list) {
      let failure = failures.get(one.message);
      // A partition that is temporarily unavailable refuses all alike.
      const isAlone = list.length === 1 || failure?.error instanceof Fault;
      if (failure !== undefined && !isAlone) {
        [failure] = await this.#parts.kafka.deliver(one.topic, [one.message]);
        if (failure === undefined) this.#acknowledged([one]);
      }
      if (failure !== undefined) {
        this.#refuse(one, after, failure.error);
        return true;
      }
      after = one.event.position ?? after;
    }
    return false;
  }

  #refuse({ topic, partition, event }: Outgoing, after: LogStart, error: unknown): void {
    const { type, stream, revision, id } = event;
    const cause = describeError(error instanceof Fault ? (error.cause ?? error) : error);
    const key = keyOf({ topic, partition });
    const known = this.#refusing.get(key);
    const name = `${type} ${stream}@${revision} (${id})`;
    const sinceMs = known !== undefined && known.event === name ? known.sinceMs : Date.now();
    const refusing = { topic, partition, after, event: name, cause, sinceMs };
    this.#refusing.set(key, refusing);
    this.#parts.onRefused(refusing);
  }

  #acknowledged(messages: readonly Outgoing[]): void {
    if (messages.length > 0) this.#parts.onAcknowledged(messages);
  }
}

/** The first refusal, as a sentence; null if there is none. */
export function problemOf(refusing: readonly RefusingPartition[]): string | null {
  const first = refusing.find(({ event }) => event !== null) ?? refusing[0];
  if (first === undefined) return null;
  const { topic, partition, event, cause } = first;
  const others = refusing.length === 1 ? '' : `; ${refusing.length} partitions wait`;
  return `${topic} refuses ${event ?? 'an event'} in partition ${partition}: ${cause}${others}`;
}

const keyOf = ({ topic, partition }: Pick<Outgoing, 'topic' | 'partition'>): string => `${topic}/${partition}`;

/** Every known position is after null. */
function isAfter(one: GlobalPosition | null, other: GlobalPosition | null): boolean {
  return one !== null && (other === null || comparePositions(one, other) > 0);
}

function isAfterStart(one: GlobalPosition | null, start: LogStart | undefined): boolean {
  return start !== undefined && isAfter(one, start === 'start' ? null : start);
}

/** As many events as fit a request, at least one. */
function firstRequest(events: readonly StoredEvent[]): readonly StoredEvent[] {
  let length = 0;
  const end = events.findIndex((event, index) => {
    length += JSON.stringify(event.data ?? null).length;
    return index > 0 && length > MAX_REQUEST_LENGTH;
  });
  return end < 0 ? events : events.slice(0, end);
}
