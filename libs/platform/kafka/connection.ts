import {
  type Admin,
  type Consumer,
  Kafka,
  type logCreator,
  logLevel,
  type Message,
  type Producer,
  type SASLOptions,
} from 'kafkajs';
import { Fault } from '#libs/kernel/faults.ts';
import { tlsOptionsOf, type KafkaConfig, type KafkaSasl, type TlsFiles } from '#libs/platform/config/index.ts';
import { retry, settledWithin, type LifecycleLog } from '#libs/platform/lifecycle/index.ts';
import { errorOfCode, isAnswer, isUnknownTopic, kafkaFault } from './kafka-errors.ts';
import { adaptKafkajs, CLIENT_ID, createPartitioner, forgetOutcome, outcomeOf } from './kafkajs/index.ts';

export interface KafkaOptions {
  /** `host:port`; one reachable broker suffices. */
  readonly brokers: readonly string[];
  readonly tls?: TlsFiles | null;
  readonly sasl?: KafkaSasl | null;
  /** Partitions of a silent member are assigned to others after it. Default 6,000. */
  readonly sessionTimeoutMs?: number;
  readonly log: LifecycleLog;
  /** Deadline of one request to a broker. Default 10,000. */
  readonly requestTimeoutMs?: number;
}

export function kafkaOptionsOf(config: KafkaConfig, log: LifecycleLog): KafkaOptions {
  const { kafkaBrokers, kafkaTls, kafkaSasl, kafkaSessionTimeoutMs } = config;
  return { brokers: kafkaBrokers, tls: kafkaTls, sasl: kafkaSasl, sessionTimeoutMs: kafkaSessionTimeoutMs, log };
}

/** A topic to create. An existing topic stays unchanged. */
export interface TopicSpec {
  readonly topic: string;
  readonly partitions: number;
  /** By Kafka's names. Default: the settings of the broker. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A message that Kafka has not acknowledged. */
export interface Undelivered {
  readonly message: Message;
  /** A `Fault` if it is temporary; else the error of a request that is invalid or forbidden. */
  readonly error: unknown;
  /** A broker has answered with this error; false if none could be reached, or none answered in time. */
  readonly isAnswered: boolean;
}

export interface MembershipOptions {
  readonly groupId: string;
  /**
   * How long a fetch waits for messages. kafkajs sends heartbeats, and notices that it must stop, only between fetches
   * and where the handler of a batch calls for it.
   */
  readonly fetchMs: number;
}

const REQUEST_TIMEOUT_MS = 10_000;
const CONNECTION_TIMEOUT_MS = 3_000;
/** The retries of kafkajs within one call; callers that can wait longer retry the call. */
const RETRY = { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 };
/** Retries start within this time, in which Kafka elects a new leader for a partition. */
const RETRY_WITHIN_MS = 10_000;
/** kafkajs waits for outstanding responses before it disconnects, even for those that never arrive. */
const DISCONNECT_MS = 2_000;
/** The shortest that brokers allow by default. */
const SESSION_MS = 6_000;
/** Interval of a member's heartbeats, as far as {@link MembershipOptions.fetchMs} lets it. */
export const HEARTBEAT_MS = 1_000;

/**
 * The Kafka clients of this process. They connect when they are first used, and reconnect.
 *
 * Guarantees: `send` resolves when all in-sync replicas have acknowledged every message; messages with the same key that
 * are sent by consecutive calls are stored in that order. Of a request that failed in part, only the messages that were
 * not acknowledged are sent again. Every call settles within about a minute.
 *
 * Omissions: no transactions and no idempotent producer (kafkajs calls it experimental), so messages may be duplicated;
 * no retries beyond a few seconds. A message that was not acknowledged may have been stored after a timeout or a lost
 * connection.
 *
 * Errors: `Fault` `store_unavailable` while Kafka is unavailable; the error of kafkajs for a request that is invalid or
 * forbidden.
 */
export class KafkaConnection {
  readonly #kafka: Kafka;
  readonly #requestTimeoutMs: number;
  readonly #sessionTimeoutMs: number;
  readonly #closed = new AbortController();
  /**
   * A producer for each topic: kafkajs fails to send to any topic while one of a producer's topics cannot be
   * described.
   */
  readonly #producers = new Map<string, Promise<Producer>>();

  constructor(options: KafkaOptions) {
    const { brokers, tls = null, sasl = null, log, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
    const { sessionTimeoutMs = SESSION_MS } = options;
    adaptKafkajs();
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#sessionTimeoutMs = sessionTimeoutMs;
    this.#kafka = new Kafka({
      brokers: [...brokers],
      ssl: tls !== null && tlsOptionsOf(tls, 'kafka', log),

      // The types of kafkajs separate the mechanisms, although all three take the same options.
      ...(sasl !== null && { sasl: sasl as SASLOptions }),
      clientId: CLIENT_ID,
      requestTimeout: requestTimeoutMs,
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      retry: RETRY,
      logLevel: logLevel.WARN,
      logCreator: loggingTo(log),
    });
  }

  /** Sends messages to a topic. If it fails, a part of them may have been stored; see `deliver`. */
  async send(topic: string, messages: readonly Message[]): Promise<void> {
    const [undelivered] = await this.deliver(topic, messages);
    if (undelivered !== undefined) throw undelivered.error;
  }

  /**
   * Sends messages to a topic, and while Kafka is unavailable again those that were not acknowledged, in the same order.
   *
   * @returns the messages that Kafka has not acknowledged. The messages of a partition are stored all or none.
   * @throws Fault `stopping` once the connection is closed
   */
  async deliver(topic: string, messages: readonly Message[]): Promise<readonly Undelivered[]> {
    const refused: Undelivered[] = [];
    let waiting: readonly Undelivered[] = [];
    await this.#retry(async () => {
      const sent = waiting.length === 0 ? messages : waiting.map(({ message }) => message);
      const failed = await this.#undelivered(topic, sent);
      waiting = failed.filter(({ error }) => error instanceof Fault);
      refused.push(...failed.filter(({ error }) => !(error instanceof Fault)));
      if (waiting[0] !== undefined) throw waiting[0].error;
    }).catch((error: unknown) => {
      if (waiting.length === 0 || isStopping(error)) throw error;
    });
    return [...refused, ...waiting];
  }

  /** Creates the topics that do not exist, and waits until they can be used. */
  ensureTopics(specs: readonly TopicSpec[]): Promise<void> {
    return this.withAdmin(async (admin) => {
      const exist = await Promise.all(specs.map(({ topic }) => topicExists(admin, topic)));
      const missing = specs.filter((_, index) => exist[index] === false);
      if (missing.length === 0) return;
      await admin.createTopics({
        // kafkajs would fail when another broker does not know a topic yet, or when another process has created it.
        waitForLeaders: false,
        topics: missing.map(({ topic, partitions, settings = {} }) => ({
          topic,
          numPartitions: partitions,
          configEntries: Object.entries(settings).map(([name, value]) => ({ name, value })),
        })),
      });
      await this.#retry(() => admin.fetchTopicMetadata({ topics: missing.map(({ topic }) => topic) }));
    });
  }

  /** The metadata that a group has committed with its offset in partition 0 of a topic; null if there is none. */
  committedMetadata(groupId: string, topic: string): Promise<string | null> {
    return this.withAdmin(async (admin) => {
      const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] });
      return offsets?.partitions.find(({ partition }) => partition === 0)?.metadata || null;
    });
  }

  /** Runs `work` with a connection of its own, for rare requests. */
  async withAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = this.#kafka.admin();
    try {
      await admin.connect();
      return await work(admin);
    } catch (error) {
      throw kafkaFault(error);
    } finally {
      void disconnect(admin);
    }
  }

  /**
   * A consumer, not connected yet, whose partitions are assigned to other members soon after it died. It does not restart
   * itself, because kafkajs does so after some errors only: after a crash it must be disconnected and replaced.
   */
  groupMember({ groupId, fetchMs }: MembershipOptions): Consumer {
    return this.#kafka.consumer({
      groupId,
      sessionTimeout: this.#sessionTimeoutMs,
      rebalanceTimeout: this.#sessionTimeoutMs,
      heartbeatInterval: HEARTBEAT_MS,
      maxWaitTimeInMs: fetchMs,
      allowAutoTopicCreation: false,
      // Parley writes no transactions, and those of other programs would delay the messages behind them.
      readUncommitted: true,
      retry: { ...RETRY, restartOnFailure: async () => false },
    });
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const producers = [...this.#producers.values()];
    this.#producers.clear();
    await Promise.all(producers.map((producer) => producer.then(disconnect, () => undefined)));
  }

  /** Retries while Kafka is unavailable. */
  #retry(work: () => Promise<unknown>): Promise<unknown> {
    const deadline = Date.now() + RETRY_WITHIN_MS;
    return retry(work, {
      maxMs: 1_000,
      signal: this.#closed.signal,
      onFailure(error) {
        const fault = kafkaFault(error);
        if (!(fault instanceof Fault) || Date.now() >= deadline) throw fault;
      },
    });
  }

  /** Sends once. @returns the messages that were not acknowledged */
  async #undelivered(topic: string, messages: readonly Message[]): Promise<readonly Undelivered[]> {
    for (const message of messages) forgetOutcome(message);
    try {
      await this.#sendOnce(topic, messages);
      return [];
    } catch (error) {
      if (isStopping(error)) throw error;
      const sent = messages.map((message) => ({ message, outcome: outcomeOf(message) }));
      return sent.flatMap(({ message, outcome }) => {
        if (outcome === 0) return [];
        const own = kafkaFault(outcome === undefined ? error : errorOfCode(outcome));
        return [{ message, error: own, isAnswered: outcome !== undefined || isAnswer(error) }];
      });
    }
  }

  async #sendOnce(topic: string, messages: readonly Message[]): Promise<void> {
    // A new producer would never be disconnected.
    if (this.#closed.signal.aborted) throw new Fault('stopping', 'The connection to Kafka is closed');
    const connecting = this.#producers.get(topic) ?? this.#connectProducer();
    this.#producers.set(topic, connecting);
    try {
      const producer = await connecting;
      const topicMessages = [{ topic, messages: [...messages] }];
      // The broker times out a little earlier than the client, so that its error names the reason.
      await producer.sendBatch({ topicMessages, acks: -1, timeout: this.#requestTimeoutMs * 0.8 });
    } catch (error) {
      // After a timeout kafkajs keeps using the connection, even if it is dead: the next call opens another one.
      if (this.#producers.get(topic) === connecting) this.#producers.delete(topic);
      const disconnected = connecting.then(disconnect, () => undefined);
      // kafkajs rejects at the first error; the other brokers' acknowledgements arrive before it has disconnected.
      if (isAnswer(error) && messages.some((message) => outcomeOf(message) === undefined)) await disconnected;
      throw kafkaFault(error);
    }
  }

  async #connectProducer(): Promise<Producer> {
    const producer = this.#kafka.producer({
      createPartitioner,
      allowAutoTopicCreation: false,
      // kafkajs retries only brokers that have not answered. It would drop, and report as sent, the messages that failed
      // at one broker and whose partition has moved to a broker that has answered.
      retry: { ...RETRY, retries: 0 },
    });
    await producer.connect();
    return producer;
  }
}

async function topicExists(admin: Admin, topic: string): Promise<boolean> {
  try {
    await admin.fetchTopicMetadata({ topics: [topic] });
    return true;
  } catch (error) {
    if (isUnknownTopic(error)) return false;
    throw error;
  }
}

const isStopping = (error: unknown): boolean => error instanceof Fault && error.code === 'stopping';

/** Disconnects within {@link DISCONNECT_MS}. Never rejects. */
export function disconnect(client: { disconnect(): Promise<void> }): Promise<void> {
  return settledWithin(DISCONNECT_MS, client.disconnect());
}

/** At the level `warn`: errors also reach the caller, which logs them with their consequences. */
function loggingTo(log: LifecycleLog): logCreator {
  return () =>
    ({ namespace, log: { message, broker, error } }) =>
      log.warn({ kafkajs: namespace, broker, reason: error }, `kafka: ${message}`);
}
