import type { Message } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { comparePositions, decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import type { EventFeed, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
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
  readonly feed: EventFeed;
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  readonly topics: LogTopics;
  /** Told each time it has to begin again. */
  readonly onProblem: (error: unknown) => void;
  readonly onSent?: (events: number) => void;
}

const SAVE_EVERY_MS = 200;
/** Messages of one request; larger ones only fill the broker's memory. */
const MOST_CHARACTERS = 512 * 1024;
/** More than a request usually holds, so that one is being read while another is being sent. */
const MAX_BATCH = 1_000;

/**
 * EventStoreDB's `$all` -> Kafka: every event of every stream but the system's, keyed by its stream.
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
    const { kafka, topics, onProblem } = this.#parts;
    for (let failures = 0; !signal.aborted;) {
      try {
        await kafka.ensureTopics(specsOf(topics));
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
    const failed = new AbortController();
    const signal = AbortSignal.any([term.signal, failed.signal]);
    const saver = new PositionSaver(from, (position) => term.save(encodePosition(position)));
    const marks = new WatermarkWriter(this.#parts, from);
    const beside = Promise.all([saver.run(signal), marks.run(signal)]).catch((error: unknown) => {
      failed.abort();
      throw error;
    });
    try {
      await this.#carry(from, signal, { saver, marks });
    } finally {
      failed.abort();
      await beside;
      // Nobody repeats what was sent if the term ends in good order.
      await saver.save();
      if (this.#progress.phase === 'active') this.#report({ phase: 'standby', position: null });
    }
  }

  async #carry(from: GlobalPosition | 'start', signal: AbortSignal, after: AfterSending): Promise<void> {
    const { feed, messages } = this.#parts;
    for await (const item of feed.subscribe({ from, streamPrefixes: 'all', signal, maxBatch: MAX_BATCH })) {
      if (item.kind === 'events') {
        let batch: Message[] = [];
        let characters = 0;
        let last: StoredEvent | null = null;
        for (const event of item.events) {
          const message = messages.encode(event);
          if (characters + message.value.length > MOST_CHARACTERS && last !== null) {
            await this.#send(batch, last, after);
            [batch, characters] = [[], 0];
            if (signal.aborted) return;
          }
          batch.push(message);
          characters += message.value.length;
          last = event;
        }
        if (last !== null) await this.#send(batch, last, after);
      } else if (item.kind === 'checkpoint') {
        this.#reached(item.position, after.saver);
      }
    }
  }

  async #send(batch: readonly Message[], { position }: StoredEvent, { saver, marks }: AfterSending): Promise<void> {
    await this.#parts.kafka.send(this.#parts.topics.log, batch);
    this.#parts.onSent?.(batch.length);
    this.#report({ eventsSent: this.#progress.eventsSent + batch.length });
    if (position === null) return;
    this.#reached(position, saver);
    marks.note(position);
  }

  #reached(position: GlobalPosition, saver: PositionSaver): void {
    saver.note(position);
    this.#report({ position });
  }

  /** What was relayed came from a longer log: of another event store, or of this one before it was set back. */
  async #refuseShorterLog(from: GlobalPosition | 'start'): Promise<void> {
    if (from === 'start') return;
    const head = await this.#parts.feed.head();
    if (head !== null && comparePositions(head, from) >= 0) return;
    throw new Error(
      `the log ends before ${encodePosition(from)}, which was relayed already: it is another log, or an old copy. ` +
        `Delete the consumer group ${this.#parts.topics.relayGroup} and the topic ${this.#parts.topics.log} to relay it`,
    );
  }

  #report(change: Partial<RelayProgress>): void {
    this.#progress = { ...this.#progress, ...change };
  }
}

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
