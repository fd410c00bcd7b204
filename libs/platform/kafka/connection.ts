import { Kafka, logLevel } from 'kafkajs';
import type { Admin, Consumer, ConsumerConfig, KafkaConfig, logCreator, Message, Producer, SASLOptions } from 'kafkajs';
import { Fault } from '#libs/kernel/faults.ts';
import type { KafkaSasl, KafkaTls } from '#libs/platform/config/index.ts';
import { retry } from '#libs/platform/lifecycle/index.ts';
import type { LifecycleLog } from '#libs/platform/lifecycle/index.ts';
import { isUnknownTopic, kafkaFault } from './kafka-errors.ts';
import { mendTimers } from './kafkajs-timer.ts';
import { createPartitioner } from './partitioner.ts';

export interface KafkaOptions {
  /** `host:port`, each; one that answers is enough. */
  readonly brokers: readonly string[];
  /** Null, the default: in clear. */
  readonly tls?: KafkaTls | null;
  /** Null, the default: brokers do not ask who it is. */
  readonly sasl?: KafkaSasl | null;
  readonly log: LifecycleLog;
  /** How long a broker may take for one answer; each question is repeated a few times. Default 10,000. */
  readonly requestTimeoutMs?: number;
}

/** A topic as it is made where it is missing; one that is there stays as it is. */
export interface TopicSpec {
  readonly topic: string;
  readonly partitions: number;
  /** Settings by Kafka's names. Those of the broker where none is given. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** What goes to one topic. */
export interface TopicMessages {
  readonly topic: string;
  readonly messages: readonly Message[];
}

const REQUEST_TIMEOUT_MS = 10_000;
const CONNECTION_TIMEOUT_MS = 3_000;
/** kafkajs repeats only for as long as a caller may wait; whoever has more patience repeats the call. */
const RETRY = { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 };
/** After that long a request that failed is not repeated: as long as Kafka needs to put another broker in charge. */
const PATIENCE_MS = 10_000;
/** kafkajs waits for answers before it disconnects, also for those that never come. */
const DISCONNECT_MS = 2_000;

/**
 * The Kafka of this process. Nothing is connected before it is needed, and brokers may go and come back.
 *
 * Guarantees: `send` resolves when all replicas in sync have acknowledged every message; messages of one key, sent
 * one call after another, lie in the log in that order, and a repeated call only repeats them. A request of which a
 * part failed is sent again as a whole. Every call settles within about a minute.
 *
 * Omissions: no transactions and no idempotent producer (kafkajs calls it experimental), so a message may be there
 * twice; no retries beyond a few seconds.
 *
 * Errors: `Fault` `store_unavailable` while Kafka is away; kafkajs' own error for what is wrong or forbidden.
 */
export class KafkaConnection {
  readonly #kafka: Kafka;
  readonly #requestTimeoutMs: number;
  readonly #closed = new AbortController();
  #producer: Promise<Producer> | null = null;

  constructor(options: KafkaOptions) {
    const { brokers, log, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
    mendTimers();
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#kafka = new Kafka({
      brokers: [...brokers],
      ...securityOf(options),
      clientId: 'parley',
      requestTimeout: requestTimeoutMs,
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      retry: RETRY,
      logLevel: logLevel.WARN,
      logCreator: loggingTo(log),
    });
  }

  send(topic: string, messages: readonly Message[]): Promise<void> {
    return this.sendTo([{ topic, messages }]);
  }

  /** As `send`, to several topics in one request: all of it is acknowledged, or it is not known what is. */
  sendTo(topics: readonly TopicMessages[]): Promise<void> {
    return this.#patiently(() => this.#sendOnce(topics));
  }

  /** Repeats what may succeed in a moment. */
  async #patiently(work: () => Promise<unknown>): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    await retry(
      () =>
        work().catch((error: unknown) => {
          throw kafkaFault(error);
        }),
      {
        maxMs: 1_000,
        signal: this.#closed.signal,
        onFailure(fault) {
          if (!(fault instanceof Fault) || Date.now() >= deadline) throw fault;
        },
      },
    );
  }

  async #sendOnce(topics: readonly TopicMessages[]): Promise<void> {
    // Nobody would end the producer that this one made.
    if (this.#closed.signal.aborted) throw new Fault('stopping', 'The connection to Kafka is closed');
    const connecting = (this.#producer ??= this.#connectProducer());
    try {
      const producer = await connecting;
      // The broker gives up a little before we do, so that it is the one to say what it lacks.
      const topicMessages = topics.map(({ topic, messages }) => ({ topic, messages: [...messages] }));
      await producer.sendBatch({ topicMessages, acks: -1, timeout: this.#requestTimeoutMs * 0.8 });
    } catch (error) {
      // A request that timed out leaves its connection in use, even one that is dead: the next call takes a new one.
      if (this.#producer === connecting) this.#producer = null;
      void connecting.then(disconnect, () => undefined);
      throw kafkaFault(error);
    }
  }

  /**
   * Makes the topics that are not there, and waits until they can be used.
   *
   * Omission: kafkajs makes none while any topic of the Kafka, whosever it is, has a partition without a leader.
   */
  ensureTopics(specs: readonly TopicSpec[]): Promise<void> {
    return this.withAdmin(async (admin) => {
      const there = await Promise.all(specs.map(({ topic }) => isThere(admin, topic)));
      const missing = specs.filter((_, index) => there[index] === false);
      if (missing.length === 0) return;
      await admin.createTopics({
        // It gives up where a broker has not heard yet of what another one has made, or where somebody else made it.
        waitForLeaders: false,
        topics: missing.map(({ topic, partitions, settings = {} }) => ({
          topic,
          numPartitions: partitions,
          configEntries: Object.entries(settings).map(([name, value]) => ({ name, value })),
        })),
      });
      await this.#patiently(() => admin.fetchTopicMetadata({ topics: missing.map(({ topic }) => topic) }));
    });
  }

  /** What a group has saved beside its offset in partition 0 of a topic; null if nothing. */
  savedNote(groupId: string, topic: string): Promise<string | null> {
    return this.withAdmin(async (admin) => {
      // Only for kafkajs to know a topic: that it is not there, the next call says.
      await isThere(admin, topic);
      const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] });
      const note = offsets?.partitions.find(({ partition }) => partition === 0)?.metadata;
      return note === undefined || note === null || note === '' ? null : note;
    });
  }

  /** For rare questions: a connection of its own, closed again. */
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
   * A consumer that does not restart itself: kafkajs does so after some errors and not after others. After a crash
   * it is disconnected for good, and whoever owns it makes a new one.
   */
  consumer(config: ConsumerConfig): Consumer {
    return this.#kafka.consumer({ ...config, retry: { ...RETRY, restartOnFailure: async () => false } });
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const producer = this.#producer;
    this.#producer = null;
    await producer?.then(disconnect, () => undefined);
  }

  async #connectProducer(): Promise<Producer> {
    const producer = this.#kafka.producer({
      // As Kafka's own clients do: anybody who writes or looks up a key finds the same partition.
      createPartitioner,
      allowAutoTopicCreation: false,
      // It sends again only to brokers that have not answered. What failed on one, and has moved to another that has
      // answered, it leaves out and calls sent.
      retry: { ...RETRY, retries: 0 },
    });
    await producer.connect();
    return producer;
  }
}

/**
 * Asks by name: kafkajs, before anything else that it is asked, wants to know all topics of the Kafka, and gives up
 * where one of them has a partition without a leader. When it knows one topic, it goes on from that.
 */
async function isThere(admin: Admin, topic: string): Promise<boolean> {
  try {
    await admin.fetchTopicMetadata({ topics: [topic] });
    return true;
  } catch (error) {
    if (isUnknownTopic(error)) return false;
    throw error;
  }
}

function securityOf({ tls = null, sasl = null }: KafkaOptions): Partial<KafkaConfig> {
  return {
    ...(tls !== null && {
      ssl: {
        ...(tls.ca !== null && { ca: [tls.ca] }),
        ...(tls.cert !== null && { cert: tls.cert }),
        ...(tls.key !== null && { key: tls.key }),
      },
    }),
    // Its types know each mechanism with its options apart, though all three take the same.
    ...(sasl !== null && { sasl: sasl as SASLOptions }),
  };
}

/** Gives up on answers that do not come; the socket is closed with the last reference to it. */
export async function disconnect(client: { disconnect(): Promise<void> }): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, DISCONNECT_MS);
  await Promise.race([client.disconnect().catch(() => undefined), late]);
  clearTimeout(timer);
}

/** Errors of kafkajs come back to us as well, where they are told once and with what follows from them. */
function loggingTo(log: LifecycleLog): logCreator {
  return () =>
    ({ namespace, log: { message, broker, error } }) =>
      log.warn({ kafkajs: namespace, broker, reason: error }, `kafka: ${message}`);
}
