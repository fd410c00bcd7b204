// A connected consumer of a group and its messages in flight.
import type { Message } from './message.ts';

export type ConsumerOptions = {
  id: string;
  /** Sends a message. */
  send(message: Message): void;
  /** Ends the membership with an error: the group drops the consumer. */
  fail(error: unknown): void;
  /** Limit of messages in flight. */
  bufferSize: number;
  /** Bytes of messages in flight beyond which it gets no further ones. */
  maxBytes: number;
  /** Address of the peer. */
  from: string;
  connectionName: string;
  extraStatistics: boolean;
};

type InFlight = { message: Message; sentAt: number; deadline: number };

export class Consumer {
  readonly options: ConsumerOptions;
  readonly latencies: Latencies | undefined;
  totalItems = 0;
  /** In the order of delivery, so that deadlines increase. */
  #inFlight = new Set<InFlight>();
  #bytes = 0;
  /** A stream may have an event id twice. */
  #byId = new Map<string, InFlight[]>();

  constructor(options: ConsumerOptions) {
    this.options = options;
    this.latencies = options.extraStatistics ? new Latencies() : undefined;
  }

  get id(): string {
    return this.options.id;
  }

  get hasRoom(): boolean {
    return this.#inFlight.size < this.options.bufferSize && this.#bytes < this.options.maxBytes;
  }

  get inFlightCount(): number {
    return this.#inFlight.size;
  }

  /** Unacknowledged messages, oldest first. */
  *inFlight(): Iterable<Message> {
    for (const { message } of this.#inFlight) yield message;
  }

  /** `timeoutMs` 0: never expires. */
  deliver(message: Message, timeoutMs: number): void {
    const sentAt = performance.now();
    const entry = { message, sentAt, deadline: timeoutMs > 0 ? sentAt + timeoutMs : Infinity };
    this.#inFlight.add(entry);
    this.#bytes += bytesOf(message);
    this.#byId.set(message.id, [...(this.#byId.get(message.id) ?? []), entry]);
    this.totalItems++;
    this.options.send(message);
  }

  /** Removes a message that the consumer answered; undefined when it is not in flight here. */
  take(id: string): Message | undefined {
    const entry = this.#byId.get(id)?.[0];
    if (!entry) return undefined;
    this.#remove(entry);
    this.latencies?.add(performance.now() - entry.sentAt);
    return entry.message;
  }

  /** Removes the messages whose deadline has passed. */
  takeExpired(now: number): Message[] {
    const expired: Message[] = [];
    for (const entry of this.#inFlight) {
      if (entry.deadline > now) break;
      this.#remove(entry);
      expired.push(entry.message);
    }
    return expired;
  }

  /** Deadline of the next message to expire (`performance.now`); Infinity without one. */
  get nextDeadline(): number {
    const [oldest] = this.#inFlight;
    return oldest?.deadline ?? Infinity;
  }

  #remove(entry: InFlight): void {
    this.#inFlight.delete(entry);
    this.#bytes -= bytesOf(entry.message);
    const rest = this.#byId.get(entry.message.id)?.filter((other) => other !== entry) ?? [];
    if (rest.length > 0) this.#byId.set(entry.message.id, rest);
    else this.#byId.delete(entry.message.id);
  }
}

function bytesOf({ event, link }: Message): number {
  return (event?.frame.length ?? 0) + (link?.frame.length ?? 0);
}

const SAMPLES = 1000;

const PERCENTILES: readonly (readonly [string, number])[] = [
  ['Quintile 1', 20],
  ['Quintile 2', 40],
  ['Quintile 3', 60],
  ['Quintile 4', 80],
  ['Quintile 5', 100],
  ['90%', 90],
  ['95%', 95],
  ['99%', 99],
  ['99.5%', 99.5],
  ['99.9%', 99.9],
];

/** How long a consumer takes to answer, over its last answers. */
export class Latencies {
  #samples: number[] = [];
  #next = 0;

  add(milliseconds: number): void {
    this.#samples[this.#next] = milliseconds;
    this.#next = (this.#next + 1) % SAMPLES;
  }

  /** By the protocol's names, in whole milliseconds; all 0 before the first answer. */
  measurements(): { key: string; value: number }[] {
    const sorted = this.#samples.toSorted((a, b) => a - b);
    const at = (percent: number) =>
      Math.round(sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0);
    const mean = sorted.length === 0 ? 0 : sorted.reduce((sum, one) => sum + one, 0) / sorted.length;
    return [
      { key: 'Mean', value: Math.round(mean) },
      { key: 'Median', value: at(50) },
      { key: 'Fastest', value: at(0) },
      ...PERCENTILES.map(([key, percent]) => ({ key, value: at(percent) })),
      { key: 'Highest', value: at(100) },
    ];
  }
}
