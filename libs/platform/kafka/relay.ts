import type { Message } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { comparePositions, decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import type { LogFeed, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type { PublicMessages } from '#libs/platform/live/index.ts';
import type { KafkaConnection } from './connection.ts';
import { leadInTurns } from './leadership.ts';
import type { Term } from './leadership.ts';
import type { LogMessages } from './log-message.ts';
import { specsOf } from './topics.ts';
import type { LogTopics } from './topics.ts';
import { WatermarkWriter } from './watermark-writer.ts';

/** How far the relay of this process has come. */
export interface RelayProgress {
  /** `standby`: another process is the active one. `away`: Kafka or the event store is, see `problem`. */
  readonly phase: 'away' | 'standby' | 'active';
  /** Everything up to it has been acknowledged by Kafka; null while nothing was, and on standby. */
  readonly position: GlobalPosition | null;
  /** Events that this process has sent, repetitions included. */
  readonly eventsSent: number;
  readonly problem: string | null;
}

export interface RelayParts {
  readonly feed: LogFeed;
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** Makes what other teams are told; absent where they are told nothing. */
  readonly publicMessages?: PublicMessages | undefined;
  readonly topics: LogTopics;
  /** Told each time it has to begin again. */
  readonly onProblem: (error: unknown) => void;
  readonly onSent?: (events: number) => void;
}

const SAVE_EVERY_MS = 200;
/** As far as one comes in a log that is still empty. */
const START_OF_LOG: GlobalPosition = { commit: 0n, prepare: 0n };
/** Messages of one request; larger ones only fill the broker's memory. */
const MOST_CHARACTERS = 512 * 1024;
/** More than a request usually holds, so that one is being read while another is being sent. */
const MAX_BATCH = 1_000;

/**
 * EventStoreDB's `$all` -> Kafka: every event of every stream but the system's, keyed by its stream; and, in a topic
 * of its own, what other teams are told of those of channels, by the same guarantees.
 *
 * Guarantees: at least once, and in the order of each stream: an event comes to lie in Kafka for the first time
 * only after all events before it in its stream. Its position is saved after Kafka has acknowledged it, so whoever
 * goes on there has left nothing out. Of several relays one is active; when it dies another goes on within seconds.
 *
 * Omissions: an event may come again, also after later ones of its stream (a successor repeats what was not saved,
 * a relay that was paused may send once more what its successor has sent): consumers are guarded by revision.
 *
 * Watermarks tell every partition how far the log has come in it, also those that get no event (`WatermarkWriter`).
 *
 * While Kafka or the event store is away it waits, and goes on from what was saved.
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
        this.#report({ phase: 'away', position: null, problem: inWords(error) });
        onProblem(error);
        // Who is away may come back at any time. What was refused, such as a password, waits for a person: it is
        // not to be asked so often that an account is locked for it.
        const maxMs = error instanceof Fault ? 2_000 : 30_000;
        await pause(backoffMs(failures, { maxMs }), signal);
      }
    }
  }

  /** One term as the active relay. */
  async #lead(term: Term): Promise<void> {
    const saved = await term.saved();
    const from = saved === null ? 'start' : decodePosition(saved);
    await this.#refuseShorterLog(from);
    this.#report({ phase: 'active', position: from === 'start' ? null : from });
    try {
      await this.#work(from, term);
    } finally {
      // However it ends: a position that another relay does not let it save is no news to anybody else.
      if (this.#progress.phase === 'active') this.#report({ phase: 'standby', position: null });
    }
  }

  /** Carries the log, and beside that says how far it has come. */
  async #work(from: GlobalPosition | 'start', term: Term): Promise<void> {
    const failed = new AbortController();
    const fail = (): void => failed.abort();
    const signal = AbortSignal.any([term.signal, failed.signal]);
    const saver = new PositionSaver(from, (position) => term.save(encodePosition(position)));
    const marks = new WatermarkWriter(this.#parts, from);
    const beside = Promise.all([saver.run(signal), marks.run(signal)]);
    // Heard at once, though it is awaited last: a rejection that nobody hears of ends the process.
    beside.catch(fail);
    try {
      await this.#carry(from, { signal, fail }, { saver, marks });
    } finally {
      fail();
      await beside;
      // Nobody repeats what was sent if the term ends in good order.
      await saver.save();
    }
  }

  /** While one request is on its way, the next one is read and put together. */
  async #carry(from: GlobalPosition | 'start', { signal, fail }: Until, after: AfterSending): Promise<void> {
    let sending = Promise.resolve();
    const next = (work: () => Promise<void> | void): void => {
      sending = sending.then(work);
      // Nobody may be waiting for it: the feed has nothing to tell, for instance.
      sending.catch(fail);
    };
    try {
      const items = this.#parts.feed.subscribe({ from, streamPrefixes: 'all', signal, maxBatch: MAX_BATCH });
      for await (const item of items) {
        if (item.kind === 'events') {
          for (const request of this.#requestsOf(item.events)) {
            // One at a time: what comes after a request that failed must not lie in Kafka before it.
            await sending;
            if (signal.aborted) return;
            next(() => this.#send(request, after));
          }
        } else if (item.kind === 'checkpoint') {
          next(() => this.#reached(item.position, after.saver));
        }
      }
    } finally {
      await sending;
    }
  }

  *#requestsOf(events: readonly StoredEvent[]): Generator<Request> {
    const { messages, publicMessages } = this.#parts;
    let request = newRequest();
    for (const event of events) {
      const message = messages.encode(event);
      const told = publicMessages?.encode(event) ?? null;
      const characters = message.value.length + (told?.value.length ?? 0);
      if (request.characters + characters > MOST_CHARACTERS && request.log.length > 0) {
        yield request;
        request = newRequest();
      }
      request.log.push(message);
      if (told !== null) request.events.push(told);
      request.characters += characters;
      request.last = event.position;
    }
    if (request.log.length > 0) yield request;
  }

  async #send({ log, events, last }: Request, { saver, marks }: AfterSending): Promise<void> {
    const { kafka, topics, onSent } = this.#parts;
    const toLog = { topic: topics.log, messages: log };
    await kafka.sendTo(events.length === 0 ? [toLog] : [toLog, { topic: topics.events, messages: events }]);
    onSent?.(log.length);
    this.#report({ eventsSent: this.#progress.eventsSent + log.length });
    if (last === null) return;
    this.#reached(last, saver);
    marks.note(last);
  }

  #reached(position: GlobalPosition, saver: PositionSaver): void {
    saver.note(position);
    this.#report({ position });
  }

  /** What was relayed came from a longer log: of another event store, or of this one before it was set back. */
  async #refuseShorterLog(from: GlobalPosition | 'start'): Promise<void> {
    if (from === 'start') return;
    const head = (await this.#parts.feed.head()) ?? START_OF_LOG;
    if (comparePositions(head, from) >= 0) return;
    throw new Error(
      `the log ends before ${encodePosition(from)}, which was relayed already: it is another log, or an old copy. ` +
        `Delete the consumer group ${this.#parts.topics.relayGroup} and the topics ${this.#parts.topics.log} and ` +
        `${this.#parts.topics.events} to relay it`,
    );
  }

  #report(change: Partial<RelayProgress>): void {
    this.#progress = { ...this.#progress, ...change };
  }
}

/** How long a term lasts, and what ends it. */
interface Until {
  readonly signal: AbortSignal;
  fail(): void;
}

/** What goes to Kafka at once. */
interface Request {
  readonly log: Message[];
  readonly events: Message[];
  characters: number;
  /** Position of the last event. */
  last: GlobalPosition | null;
}

const newRequest = (): Request => ({ log: [], events: [], characters: 0, last: null });

/** What is told that Kafka has acknowledged everything up to a position. */
interface AfterSending {
  readonly saver: PositionSaver;
  readonly marks: WatermarkWriter;
}

/** With what is behind it: that Kafka is away says nothing of a certificate that is not trusted. */
function inWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && cause.message !== message ? `${message}: ${inWords(cause)}` : message;
}

/** Saves the newest position now and then, beside the work. */
class PositionSaver {
  readonly #save: (position: GlobalPosition) => Promise<void>;
  #saved: GlobalPosition | null;
  #newest: GlobalPosition | null;

  constructor(from: GlobalPosition | 'start', save: (position: GlobalPosition) => Promise<void>) {
    this.#save = save;
    this.#saved = this.#newest = from === 'start' ? null : from;
  }

  note(position: GlobalPosition): void {
    this.#newest = position;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(SAVE_EVERY_MS, signal);
      if (!signal.aborted) await this.save();
    }
  }

  async save(): Promise<void> {
    const position = this.#newest;
    if (position === null || position === this.#saved) return;
    await this.#save(position);
    this.#saved = position;
  }
}
