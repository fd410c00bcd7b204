import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EventStore, LogFeed } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type { PublicMessages } from '#libs/platform/live/index.ts';
import type { KafkaConnection } from './connection.ts';
import { IntervalWriter } from './interval-writer.ts';
import { describeError } from './kafka-errors.ts';
import { leadInTurns, type Term } from './leadership.ts';
import type { LogMessages } from './log-message.ts';
import { MAX_BATCH, problemOf, Publisher, type Outgoing, type RefusingPartition } from './publisher.ts';
import { refuseOtherLog, resumeIn } from './published-log.ts';
import { decodeCheckpoint, encodeCheckpoint, type RelayCheckpoint } from './relay-checkpoint.ts';
import { messagesOf, requestsOf } from './relay-requests.ts';
import { partitionCount, prepareTopics } from './relay-topics.ts';
import { LOG_PARTITIONS, type LogTopics } from './topics.ts';
import { Watermarks } from './watermarks.ts';

export interface RelayProgress {
  /** `standby`: another process is active. `away`: Kafka or the event store is unavailable, see `problem`. */
  readonly phase: 'away' | 'standby' | 'active';
  /** Kafka has acknowledged all events up to it; null while it has acknowledged none, and on standby. */
  readonly position: GlobalPosition | null;
  /** Events that Kafka has acknowledged to this process, repetitions included. */
  readonly eventsSent: number;
  /** The last error, until Kafka acknowledges messages again; or what Kafka refuses. */
  readonly problem: string | null;
  /** Partitions that refuse a message and wait, while the others continue. */
  readonly refusing: readonly RefusingPartition[];
  /** Settings of existing topics that differ from what Parley needs. */
  readonly topicProblems: readonly string[];
}

export interface RelayParts {
  readonly feed: LogFeed;
  readonly store: Pick<EventStore, 'readStream'>;
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** Encodes the public events. Default: none are published. */
  readonly publicMessages?: PublicMessages | undefined;
  readonly topics: LogTopics;
  /**
   * Id of the event that a refused log lacks, or its position if a relay of an older version has saved no id: the log is
   * accepted, and published from its start.
   */
  readonly acceptLostEvent?: string | null;
  /** Called with each error after which the relay starts again. */
  readonly onProblem: (error: unknown) => void;
  /** Called for each refusal of a partition, also of the same event again. */
  readonly onRefused?: (refusal: RefusingPartition) => void;
  /** Called when the settings of topics differ in another way than before. */
  readonly onTopicProblems?: (problems: readonly string[]) => void;
  readonly onSent?: (events: number) => void;
}

const SAVE_EVERY_MS = 200;
const WATERMARKS_EVERY_MS = 500;
/** Pauses between attempts at what Kafka refuses. */
const REFUSED_BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** Interval at which refusals are looked for. */
const REFUSED_EVERY_MS = 100;

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
 * A partition that refuses a message waits, and the others continue: see `Publisher`.
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
  #progress: Pick<RelayProgress, 'phase' | 'eventsSent' | 'topicProblems'> = {
    phase: 'away',
    eventsSent: 0,
    topicProblems: [],
  };
  /** Consecutive errors that Kafka has not acknowledged messages after, and the last of them. */
  #failures = 0;
  #problem: string | null = null;
  #publisher: Publisher | null = null;
  /** Why a partition of the log refuses watermarks. */
  #refusedWatermark: string | null = null;

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  get progress(): RelayProgress {
    const refusing = this.#publisher?.refusing ?? [];
    return {
      ...this.#progress,
      position: this.#publisher?.position ?? null,
      refusing,
      problem: problemOf(refusing) ?? this.#refusedWatermark ?? this.#problem,
    };
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { kafka, topics, onProblem } = this.#parts;
    while (!signal.aborted) {
      try {
        await this.#prepareTopics();
        this.#report({ phase: 'standby' });
        await leadInTurns(kafka, {
          groupId: topics.relayGroup,
          lockTopic: topics.relayLock,
          signal,
          lead: (term) => this.#lead(term),
        });
      } catch (error) {
        if (signal.aborted) return;
        this.#failures++;
        this.#problem = describeError(error);
        this.#report({ phase: 'away' });
        onProblem(error);
        // A store may come back at any time. A refusal, such as a wrong password, needs an operator, and frequent
        // attempts might lock the account.
        const maxMs = error instanceof Fault ? 2_000 : 30_000;
        await pause(backoffMs(this.#failures, { maxMs }), signal);
      }
    }
  }

  async #prepareTopics(): Promise<void> {
    const { kafka, topics, publicMessages, onTopicProblems } = this.#parts;
    const problems = await prepareTopics(kafka, topics, publicMessages !== undefined);
    if (problems.join() !== this.#progress.topicProblems.join()) onTopicProblems?.(problems);
    this.#report({ topicProblems: problems });
  }

  async #lead(term: Term): Promise<void> {
    const from = await resumeIn(this.#parts, decodeCheckpoint(await term.saved()), this.#parts.acceptLostEvent ?? null);
    const publisher = await this.#newPublisher(from);
    const failed = new AbortController();
    const signal = AbortSignal.any([term.signal, failed.signal]);
    const save = new IntervalWriter({ write: () => saveTo(term, publisher), everyMs: SAVE_EVERY_MS });
    // Before anything is sent: a relay that cannot save would repeat it in each term.
    save.changed();
    await save.flush();
    this.#publisher = publisher;
    this.#report({ phase: 'active' });
    const watermarks = await this.#newWatermarks(publisher);
    const onChange = (): void => {
      save.changed();
      watermarks.changed();
    };
    onChange();
    const writing = Promise.all([
      save.run(signal),
      watermarks.run(signal),
      this.#retryRefused(publisher, { signal, onChange }),
    ]);
    // Handled at once, although it is awaited last: otherwise its rejection would end the process.
    writing.catch(() => failed.abort());
    try {
      await this.#send(publisher, { signal, onFailure: () => failed.abort(), onChange });
    } finally {
      failed.abort();
      // Also where the last position cannot be saved.
      this.#report({ phase: 'standby' });
      this.#publisher = null;
      this.#refusedWatermark = null;
      await writing;
      // So that the successor repeats nothing.
      await save.flush();
    }
  }

  async #newPublisher(from: RelayCheckpoint): Promise<Publisher> {
    const { feed, kafka, topics } = this.#parts;
    const counts = new Map<string, number>();
    for (const topic of [topics.log, topics.events])
      counts.set(topic, await partitionCount(kafka, topic, LOG_PARTITIONS));
    const partitionsOf = (topic: string): number => counts.get(topic) ?? LOG_PARTITIONS;
    return new Publisher(from, {
      feed,
      kafka,
      partitionsOf,
      encode: (event, isWanted) => messagesOf(this.#parts, event, isWanted, partitionsOf),
      onAcknowledged: (sent) => this.#acknowledged(sent),
      onRefused: (refusal) => this.#parts.onRefused?.(refusal),
    });
  }

  async #newWatermarks(publisher: Publisher): Promise<IntervalWriter> {
    const { kafka, messages, topics } = this.#parts;
    const watermarks = new Watermarks({
      kafka,
      messages,
      topic: topics.log,
      partitions: await partitionCount(kafka, topics.log, LOG_PARTITIONS),
      positionOf: (partition) => publisher.positionOf(topics.log, partition),
      onWritten: (refusal) => {
        this.#refusedWatermark =
          refusal === null ? null : `${topics.log} refuses watermarks: ${describeError(refusal)}`;
        if (refusal === null) this.#acknowledged([]);
      },
    });
    return new IntervalWriter({ write: () => watermarks.write(), everyMs: WATERMARKS_EVERY_MS });
  }

  /** Reads and encodes the next request while one is being sent. */
  async #send(publisher: Publisher, { signal, onFailure, onChange }: Sending): Promise<void> {
    let sending = Promise.resolve();
    try {
      const from = publisher.checkpoint.position ?? 'start';
      let isResumed = false;
      const onResumed = (): void => void (isResumed = true);
      const items = this.#parts.feed.subscribe({
        from,
        streamPrefixes: 'all',
        signal,
        maxBatch: MAX_BATCH,
        onResumed,
      });
      for await (const item of items) {
        if (isResumed) {
          await sending;
          await refuseOtherLog(this.#parts, publisher.checkpoint);
          isResumed = false;
        }
        for (const { outgoing, last } of item.kind === 'events'
          ? requestsOf(item.events, (event) => publisher.encode(event))
          : []) {
          // Requests go out one at a time: Kafka must not store messages that follow a request that failed.
          await sending;
          if (signal.aborted) return;
          sending = publisher.publish(outgoing, last).then(onChange);
          // It ends the subscription, which may have no further items.
          sending.catch(onFailure);
        }
        if (item.kind !== 'checkpoint') continue;
        await sending;
        publisher.reached(item.position);
        onChange();
      }
    } finally {
      await sending;
    }
  }

  /** Retries what Kafka refuses, with backoff, until `signal` aborts. */
  async #retryRefused(publisher: Publisher, { signal, onChange }: Omit<Sending, 'onFailure'>): Promise<void> {
    for (let attempts = 0; !signal.aborted;) {
      if (publisher.refusing.length === 0) attempts = 0;
      await pause(attempts === 0 ? REFUSED_EVERY_MS : backoffMs(attempts, REFUSED_BACKOFF), signal);
      if (publisher.refusing.length === 0 || signal.aborted) continue;
      attempts++;
      if (attempts === 1) continue;
      // A topic may have been deleted.
      await this.#prepareTopics().catch(() => undefined);
      if (await publisher.retry(signal)) attempts = 1;
      onChange();
    }
  }

  #acknowledged(sent: readonly Outgoing[]): void {
    const { topics, onSent } = this.#parts;
    this.#failures = 0;
    this.#problem = null;
    const events = sent.filter(({ topic }) => topic === topics.log).length;
    if (events === 0) return;
    onSent?.(events);
    this.#report({ eventsSent: this.#progress.eventsSent + events });
  }

  #report(change: Partial<Pick<RelayProgress, 'phase' | 'eventsSent' | 'topicProblems'>>): void {
    this.#progress = { ...this.#progress, ...change };
  }
}

interface Sending {
  readonly signal: AbortSignal;
  readonly onFailure: () => void;
  /** Called when the checkpoint of the publisher has changed. */
  readonly onChange: () => void;
}

async function saveTo(term: Term, { checkpoint }: Publisher): Promise<true> {
  const { position } = checkpoint;
  if (position !== null) await term.save(encodeCheckpoint({ ...checkpoint, position }));
  return true;
}
