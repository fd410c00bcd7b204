import { disconnect, type KafkaConnection } from './connection.ts';
import { kafkaFault } from './kafka-errors.ts';

/** The time during which this process is the leader. */
export interface Term {
  /** Aborts when another process may become the leader, and when this process stops. */
  readonly signal: AbortSignal;
  /** The text that any leader saved last; null if none was saved. */
  saved(): Promise<string | null>;
  /** Saves a text of at most 4,000 characters for this and later leaders. */
  save(text: string): Promise<void>;
}

export interface LeadershipOptions {
  /** The consumer group of all candidates. */
  readonly groupId: string;
  /** An empty topic with one partition: the member that is assigned the partition is the leader. */
  readonly lockTopic: string;
  readonly signal: AbortSignal;
  /** Called for each term. If it throws, this process leaves the group and `leadInTurns` rejects with the error. */
  lead(term: Term): Promise<void>;
}

/** How long an empty fetch lasts. */
const FETCH_MS = 500;

/**
 * Elects one leader among many processes, by means of a consumer group. A leader's saved text is the metadata of the
 * group's offset.
 *
 * Guarantees: among the processes that Kafka can reach there is one leader; the `signal` of a term aborts before the next
 * term of this process begins; another process takes over within seconds when the leader dies, at once when it stops.
 *
 * Omissions: a process that was paused is not fenced. It may work for a moment beside its successor, and save a text
 * after it. `lead` has to tolerate this.
 *
 * Resolves when `signal` aborts. Errors: `Fault` `store_unavailable` when the group is unavailable, and the errors of
 * `lead`; the caller may then call it again.
 */
export async function leadInTurns(kafka: KafkaConnection, options: LeadershipOptions): Promise<void> {
  const { groupId, lockTopic, signal, lead } = options;
  const consumer = kafka.groupMember({ groupId, fetchMs: FETCH_MS });
  let isLeaving = false;
  const ended = Promise.withResolvers<void>();
  let term = new AbortController();
  /** The latest term; a term begins after the one before has ended. */
  let led = Promise.resolve();
  const saved = (): Promise<string | null> => kafka.committedMetadata(groupId, lockTopic);
  const save = async (metadata: string): Promise<void> => {
    try {
      await consumer.commitOffsets([{ topic: lockTopic, partition: 0, offset: '0', metadata }]);
    } catch (error) {
      throw kafkaFault(error);
    }
  };
  const begin = (): void => {
    const current = (term = new AbortController());
    led = led
      .then(() => (current.signal.aborted ? undefined : lead({ signal: current.signal, saved, save })))
      .catch((error: unknown) => {
        if (!current.signal.aborted) ended.reject(error);
      });
  };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    term.abort();
    if (payload.memberAssignment[lockTopic]?.includes(0) === true && !isLeaving) begin();
  });
  consumer.on(consumer.events.REBALANCING, () => term.abort());
  consumer.on(consumer.events.CRASH, ({ payload }) => ended.reject(payload.error));
  const stop = (): void => ended.resolve();
  signal.addEventListener('abort', stop, { once: true });
  try {
    if (signal.aborted) return;
    await consumer.connect();
    await consumer.subscribe({ topics: [lockTopic] });
    await consumer.run({ autoCommit: false, eachBatch: async () => undefined });
    await ended.promise;
  } catch (error) {
    throw kafkaFault(error);
  } finally {
    signal.removeEventListener('abort', stop);
    // It may be rejected after another error was thrown above.
    ended.promise.catch(() => undefined);
    isLeaving = true;
    term.abort();
    // Before it leaves the group, so that it can save once more.
    await led;
    await disconnect(consumer);
  }
}
