import type { ConsumerCrashEvent, ConsumerGroupJoinEvent } from 'kafkajs';
import { disconnect } from './connection.ts';
import type { KafkaConnection } from './connection.ts';
import { kafkaFault } from './kafka-errors.ts';
import { groupMember } from './group-member.ts';

/** The time in which this process is the one that does the work. */
export interface Term {
  /** Aborts when somebody else may begin, and when the process stops. */
  readonly signal: AbortSignal;
  /** What was saved last, in this term or in one before it, by anybody; null if nothing ever was. */
  saved(): Promise<string | null>;
  /** Saves a text of at most 4,000 characters; whoever comes next starts from it. */
  save(note: string): Promise<void>;
}

export interface LeadershipOptions {
  /** Everybody who may do the work is in this group. */
  readonly groupId: string;
  /** Of one partition and without messages: whoever is assigned the partition does the work. */
  readonly lockTopic: string;
  /** Aborting it ends the term, and hands over at once. */
  readonly signal: AbortSignal;
  /** Is called again when a term has begun anew. When it throws, the group is left and the error passed on. */
  lead(term: Term): Promise<void>;
}

/** How long an empty fetch lasts. */
const FETCH_MS = 500;

/**
 * One process of many works: Kafka's consumer group decides which, with a topic of one partition as the token. The
 * note that a leader saves is kept with the group's offset.
 *
 * Guarantees: among those who are in touch with Kafka there is one leader; `signal` of a term aborts before the next
 * term of this process begins; another process takes over within some seconds when one dies, at once when it stops.
 *
 * Omissions: none of this fences a process that was paused. It may work for a moment beside its successor, and save
 * a note after it. The work has to be such that this does no harm.
 *
 * Resolves when `signal` aborts. Errors: `Fault` `store_unavailable` when the group cannot be reached any more, and
 * whatever `lead` throws. Call it again then.
 */
export async function leadInTurns(
  kafka: KafkaConnection,
  { groupId, lockTopic, signal, lead }: LeadershipOptions,
): Promise<void> {
  const consumer = groupMember(kafka, { groupId, fetchMs: FETCH_MS });
  const over = Promise.withResolvers<void>();
  const turns = new Turns((error) => over.reject(error));
  const stop = (): void => over.resolve();
  const begin = ({ signal: ends }: { signal: AbortSignal }): Promise<void> =>
    lead({
      signal: ends,
      saved: () => kafka.savedNote(groupId, lockTopic),
      async save(note) {
        try {
          // The offset itself says nothing: the topic is empty.
          await consumer.commitOffsets([{ topic: lockTopic, partition: 0, offset: '0', metadata: note }]);
        } catch (error) {
          throw kafkaFault(error);
        }
      },
    });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }: ConsumerGroupJoinEvent) => {
    if (payload.memberAssignment[lockTopic]?.includes(0) === true) turns.begin(begin);
    else turns.end();
  });
  consumer.on(consumer.events.REBALANCING, () => turns.end());
  consumer.on(consumer.events.CRASH, ({ payload }: ConsumerCrashEvent) => over.reject(kafkaFault(payload.error)));
  signal.addEventListener('abort', stop, { once: true });
  try {
    if (signal.aborted) return;
    await consumer.connect();
    await consumer.subscribe({ topics: [lockTopic] });
    await consumer.run({ autoCommit: false, eachBatch: async () => undefined });
    await over.promise;
  } catch (error) {
    throw kafkaFault(error);
  } finally {
    signal.removeEventListener('abort', stop);
    // Somebody may await a crash that came first: nobody else hears of this one.
    over.promise.catch(() => undefined);
    // The last note is saved while the group is not left yet.
    await turns.close();
    await disconnect(consumer);
  }
}

/** One term at a time: the next begins when the one before has ended. */
class Turns {
  readonly #onFailure: (error: unknown) => void;
  #abort: AbortController | null = null;
  #last: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  begin(work: (turn: { signal: AbortSignal }) => Promise<void>): void {
    this.end();
    if (this.#closed) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.#last = this.#last
      .then(() => (abort.signal.aborted ? undefined : work(abort)))
      .catch((error: unknown) => {
        if (!abort.signal.aborted) this.#onFailure(error);
      });
  }

  end(): void {
    this.#abort?.abort();
    this.#abort = null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.end();
    await this.#last;
  }
}
