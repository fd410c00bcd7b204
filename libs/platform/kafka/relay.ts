import type { Message } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { comparePositions, decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import type { LogFeed, LogStart, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type { PublicMessages } from '#libs/platform/live/index.ts';
import type { KafkaConnection } from './connection.ts';
import { leadInTurns, type Term } from './leadership.ts';
import type { LogMessages } from './log-message.ts';
import { PositionWriter } from './position-writer.ts';
import { specsOf, type LogTopics } from './topics.ts';

export interface RelayProgress {
  /** `standby`: another process is active. `away`: Kafka or the event store is unavailable, see `problem`. */
  readonly phase: 'away' | 'standby' | 'active';
  /** Kafka has acknowledged all events up to it; null while it has acknowledged none, and on standby. */
  readonly position: GlobalPosition | null;
  /** Events that this process has sent, repetitions included. */
  readonly eventsSent: number;
  readonly problem: string | null;
}

export interface RelayParts {
  readonly feed: LogFeed;
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** Encodes the public events. Default: none are published. */
  readonly publicMessages?: PublicMessages | undefined;
  readonly topics: LogTopics;
  /** Called with each error after which the relay starts again. */
  readonly onProblem: (error: unknown) => void;
  readonly onSent?: (events: number) => void;
}

const SAVE_EVERY_MS = 200;
const WATERMARKS_EVERY_MS = 500;
/** The position of a log without events. */
const START_OF_LOG: GlobalPosition = { commit: 0n, prepare: 0n };
/** Size of one request. Larger requests only fill the broker's memory. */
const MAX_REQUEST_LENGTH = 512 * 1024;
/** More than one request usually holds, so that the relay reads the next events while it sends. */
const MAX_BATCH = 1_000;

/**
 * EventStoreDB's `$all` -> Kafka: all events of Parley, keyed by their stream; and the public events of channels in a
 * topic of their own, with the same guarantees.
 *
 * Guarantees: at least once, and in the order of each stream: the first message of an event follows the first messages
 * of all events before it in its stream. The position is saved after Kafka has acknowledged the event, so a successor
 * leaves nothing out. One of several relays is active; when it dies, another takes over within seconds.
 *
 * Omissions: an event may be repeated, also after later ones of its stream (a successor repeats what was not saved, and a
 * relay that was paused may repeat what its successor has sent): consumers are guarded by revision.
 *
 * Watermarks: every partition of the log's topic also contains messages that say up to which position Kafka has
 * acknowledged all events. They are true even if they are late, as from a relay that was paused. In a topic that was
 * deleted and created again they refer to the former topic: a consumer that begins with a topic must have read the log
 * since that topic was created. A relay writes the first ones at the beginning of its term, for those that its
 * predecessor did not write, then some after the last event, and none while there are no new events.
 *
 * While Kafka or the event store is unavailable the relay retries, and resumes from the saved position.
 */
export class Relay {
  readonly #parts: RelayParts;
  #progress: RelayProgress = { phase: 'away', position: null, eventsSent: 0, problem: null };

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  get progress(): RelayProgress {
    return this.#progress;
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { kafka, topics, publicMessages, onProblem } = this.#parts;
    for (let failures = 0; !signal.aborted;) {
      try {
        await kafka.ensureTopics(specsOf(topics, publicMessages !== undefined));
        this.#report({ phase: 'standby', problem: null });
        await leadInTurns(kafka, {
          groupId: topics.relayGroup,
          lockTopic: topics.relayLock,
          signal,
          lead: async (term) => {
            failures = 0;
            await this.#lead(term);
          },
        });
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        this.#report({ phase: 'away', position: null, problem: describe(error) });
        onProblem(error);
        // A store may come back at any time. A refusal, such as a wrong password, needs an operator, and frequent
        // attempts might lock the account.
        const maxMs = error instanceof Fault ? 2_000 : 30_000;
        await pause(backoffMs(failures, { maxMs }), signal);
      }
    }
  }

  async #lead(term: Term): Promise<void> {
    const saved = await term.saved();
    const from = saved === null ? null : decodePosition(saved);
    if (from !== null) await this.#refuseShorterLog(from);
    this.#report({ phase: 'active', position: from });
    const failed = new AbortController();
    const signal = AbortSignal.any([term.signal, failed.signal]);
    const save = new PositionWriter(from, {
      write: (position) => term.save(encodePosition(position)),
      written: from,
      everyMs: SAVE_EVERY_MS,
    });
    const watermarks = this.#watermarkWriter(from);
    const writing = Promise.all([save.run(signal), watermarks.run(signal)]);
    // Handled at once, although it is awaited last: otherwise its rejection would end the process.
    writing.catch(() => failed.abort());
    try {
      await this.#send(from ?? 'start', { signal, onFailure: () => failed.abort(), save, watermarks });
    } finally {
      failed.abort();
      // Also where the last position cannot be saved.
      this.#report({ phase: 'standby', position: null });
      await writing;
      // So that the successor repeats nothing.
      await save.flush();
    }
  }

  #watermarkWriter(from: GlobalPosition | null): PositionWriter {
    const { kafka, messages, topics } = this.#parts;
    let partitions: readonly number[] | null = null;
    const write = async (position: GlobalPosition): Promise<void> => {
      partitions ??= await partitionsOf(kafka, topics.log);
      const place = (partition: number) => ({ topic: topics.log, partition });
      await kafka.send(
        topics.log,
        partitions.map((partition) => messages.encodeWatermark(place(partition), position)),
      );
    };
    return new PositionWriter(from, { write, written: null, everyMs: WATERMARKS_EVERY_MS });
  }

  /** Reads and encodes the next request while one is being sent. */
  async #send(from: LogStart, term: Sending): Promise<void> {
    const { signal, onFailure, save } = term;
    let sending = Promise.resolve();
    try {
      const items = this.#parts.feed.subscribe({ from, streamPrefixes: 'all', signal, maxBatch: MAX_BATCH });
      for await (const item of items) {
        for (const request of item.kind === 'events' ? this.#requestsOf(item.events) : []) {
          // One at a time: Kafka must not store what follows a request that failed.
          await sending;
          if (signal.aborted) return;
          sending = this.#sendRequest(request, term);
          // It ends the subscription, which may have no further items.
          sending.catch(onFailure);
        }
        if (item.kind !== 'checkpoint') continue;
        await sending;
        this.#reached(item.position, save);
      }
    } finally {
      await sending;
    }
  }

  *#requestsOf(events: readonly StoredEvent[]): Generator<Request> {
    const { messages, publicMessages } = this.#parts;
    let request = newRequest();
    for (const event of events) {
      const message = event.foreign === undefined ? messages.encode(event) : null;
      const publicMessage = publicMessages?.encode(event) ?? null;
      const length = (message?.value.length ?? 0) + (publicMessage?.value.length ?? 0);
      if (request.length + length > MAX_REQUEST_LENGTH && request.length > 0) {
        yield request;
        request = newRequest();
      }
      if (message !== null) request.log.push(message);
      if (publicMessage !== null) request.events.push(publicMessage);
      request.length += length;
      request.last = event.position;
    }
    // Also without messages, after foreign events: its position is reached.
    if (request.last !== null) yield request;
  }

  async #sendRequest({ log, events, last }: Request, { save, watermarks }: Sending): Promise<void> {
    const { kafka, topics, onSent } = this.#parts;
    const sent = [
      { topic: topics.log, messages: log },
      { topic: topics.events, messages: events },
    ].filter(({ messages }) => messages.length > 0);
    if (sent.length > 0) await kafka.sendTo(sent);
    onSent?.(log.length);
    this.#report({ eventsSent: this.#progress.eventsSent + log.length });
    if (last === null) return;
    this.#reached(last, save);
    watermarks.note(last);
  }

  #reached(position: GlobalPosition, save: PositionWriter): void {
    save.note(position);
    this.#report({ position });
  }

  /** The saved position may come from another event store, or from this one before it was reset. */
  async #refuseShorterLog(from: GlobalPosition): Promise<void> {
    const head = (await this.#parts.feed.head()) ?? START_OF_LOG;
    if (comparePositions(head, from) >= 0) return;
    const { relayGroup, log, events } = this.#parts.topics;
    throw new Error(
      `the log ends before ${encodePosition(from)}, which the relay has already sent: this is another log, or an old ` +
        `copy. To send it, delete the consumer group ${relayGroup} and the topics ${log} and ${events}`,
    );
  }

  #report(change: Partial<RelayProgress>): void {
    this.#progress = { ...this.#progress, ...change };
  }
}

interface Sending {
  readonly signal: AbortSignal;
  readonly onFailure: () => void;
  readonly save: PositionWriter;
  readonly watermarks: PositionWriter;
}

interface Request {
  readonly log: Message[];
  readonly events: Message[];
  length: number;
  last: GlobalPosition | null;
}

const newRequest = (): Request => ({ log: [], events: [], length: 0, last: null });

/** Includes the causes: a message such as "unavailable" alone does not mention an untrusted certificate. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && cause.message !== message ? `${message}: ${describe(cause)}` : message;
}

/** The partitions of the existing topic, which may differ from those of a new one. */
async function partitionsOf(kafka: KafkaConnection, topic: string): Promise<readonly number[]> {
  const { topics } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topic] }));
  return topics.flatMap(({ partitions }) => partitions.map(({ partitionId }) => partitionId));
}
