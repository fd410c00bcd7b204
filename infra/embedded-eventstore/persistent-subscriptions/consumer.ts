// One connected consumer of a group and what it has not acknowledged yet.
import type { Outgoing } from '../grpc/outgoing.ts';
import { eventResponse } from '../grpc/read-responses.ts';
import { Latencies } from './latencies.ts';
import type { Message } from './message.ts';

export type ConsumerOptions = {
  id: string;
  out: Outgoing;
  /** Most messages in flight. */
  bufferSize: number;
  /** Address of the peer. */
  from: string;
  user: string;
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
  /** A stream may hold one event id twice. */
  #byId = new Map<string, InFlight[]>();

  constructor(options: ConsumerOptions) {
    this.options = options;
    this.latencies = options.extraStatistics ? new Latencies() : undefined;
  }

  get id(): string {
    return this.options.id;
  }

  get hasRoom(): boolean {
    return this.#inFlight.size < this.options.bufferSize;
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
    this.#byId.set(message.id, [...(this.#byId.get(message.id) ?? []), entry]);
    this.totalItems++;
    this.options.out.write(eventResponse(message, { retryCount: message.retryCount }));
  }

  /** Takes a message that the consumer answered; undefined when it is not in flight here (any more). */
  take(id: string): Message | undefined {
    const entry = this.#byId.get(id)?.[0];
    if (!entry) return undefined;
    this.#remove(entry);
    this.latencies?.add(performance.now() - entry.sentAt);
    return entry.message;
  }

  /** Takes the messages whose time is up. */
  takeExpired(now: number): Message[] {
    const expired: Message[] = [];
    for (const entry of this.#inFlight) {
      if (entry.deadline > now) break;
      this.#remove(entry);
      expired.push(entry.message);
    }
    return expired;
  }

  /** When the next message expires (on the clock of `performance.now`); undefined while none can. */
  get nextDeadline(): number | undefined {
    const [oldest] = this.#inFlight;
    return oldest && Number.isFinite(oldest.deadline) ? oldest.deadline : undefined;
  }

  #remove(entry: InFlight): void {
    this.#inFlight.delete(entry);
    const rest = this.#byId.get(entry.message.id)?.filter((other) => other !== entry) ?? [];
    if (rest.length > 0) this.#byId.set(entry.message.id, rest);
    else this.#byId.delete(entry.message.id);
  }
}
