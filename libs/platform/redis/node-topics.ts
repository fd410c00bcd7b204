import { randomUUID } from 'node:crypto';

import calculateSlot from 'cluster-key-slot';
import type { Redis } from 'ioredis';

import { COMMAND_TIMEOUT_MS } from './redis-client.ts';
import { probeOf } from './rights.keys.ts';

export interface TopicHandlers {
  /**
   * A message shares the memory of all data received with it: copy what is kept for long. Handlers must not throw.
   */
  onMessage(message: Buffer): void;
  /** No message is missed from now on. Earlier ones, or ones since `onInterrupted`, may have been missed. */
  onListening(): void;
  /** Messages may be missed until `onListening`. */
  onInterrupted(): void;
}

export interface TopicSubscription {
  /** Whether messages are received now, as far as is known. */
  readonly listening: boolean;
  /** Ends the subscription; no handler is called afterwards. */
  stop(): void;
}

/** A topic that this process receives, for a script that publishes to it. */
export interface OwnTopic {
  /** Another topic, to which the same connection subscribes, and no other one. */
  readonly witness: string;
  /** Delivers a message as if it had been published. @returns false if the subscription was ended or interrupted since */
  receive(message: Buffer): boolean;
  /** A message may have been missed. */
  miss(): void;
}

/** A topic with subscribers, or whose last subscriber has just left. */
interface Topic {
  readonly name: string;
  readonly subscribers: Set<Subscriber>;
  listening: boolean;
}

interface Subscriber {
  readonly handlers: TopicHandlers;
  listening: boolean;
}

/** Pings find dead connections and a Redis that hangs. */
const PING_EVERY_MS = 3_000;
/** Topics in one command: few enough not to delay other clients of Redis. */
const MAX_TOPICS = 500;

export interface NodeTopicsOptions {
  /** Sharded pub/sub, or the older kind: the topics of the two differ. */
  readonly isSharded: boolean;
  /** A node of a cluster accepts sharded topics of one slot per command, and reports slots that it loses. */
  readonly isOfCluster: boolean;
  /** Another node owns a topic now. All topics of this node miss messages until `onListening`. */
  onMoved(): void;
}

/**
 * Subscriptions to topics of one node over one connection, which the first of them opens. Changes of one iteration of the
 * event loop are sent together. For guarantees and omissions see `TopicSubscriptions`.
 */
export class NodeTopics {
  readonly #redis: Redis;
  readonly #options: NodeTopicsOptions;
  readonly #topics = new Map<string, Topic>();
  /** Names that the current connection has subscribed to, or is subscribing to. */
  readonly #asked = new Set<string>();
  /** Names whose subscriptions have changed in this iteration. */
  readonly #changed = new Set<string>();
  #connection: Redis | null = null;
  /** Number of lost connections, to ignore replies of an earlier one. */
  #lost = 0;
  #pings: NodeJS.Timeout | undefined;
  readonly #witness = probeOf(randomUUID(), 'topics');
  #isWitnessed = false;

  /** @param redis the command connection; the connection for subscriptions is a duplicate */
  constructor(redis: Redis, options: NodeTopicsOptions) {
    this.#redis = redis;
    this.#options = options;
  }

  /** `onListening` is never called before this returns. */
  subscribe(name: string, handlers: TopicHandlers): TopicSubscription {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      topic = { name, subscribers: new Set(), listening: false };
      this.#topics.set(name, topic);
      this.#noteChange(name);
    }
    const { subscribers } = topic;
    const subscriber: Subscriber = { handlers, listening: false };
    subscribers.add(subscriber);
    const known = topic;
    // The topic has subscribers already, so Redis sends no confirmation.
    if (known.listening) queueMicrotask(() => known.listening && confirm(known, subscriber));
    return {
      get listening() {
        return subscriber.listening && subscribers.has(subscriber);
      },
      stop: () => {
        if (subscribers.delete(subscriber) && subscribers.size === 0) this.#noteChange(name);
      },
    };
  }

  /** Null while the topic is not received. */
  own(name: string): OwnTopic | null {
    const topic = this.#topics.get(name);
    if (!this.#isWitnessed || topic?.listening !== true) return null;
    const lost = this.#lost;
    return {
      witness: this.#witness,
      receive: (message) => {
        if (lost !== this.#lost || this.#topics.get(name) !== topic) return false;
        deliver(topic, message);
        return true;
      },
      miss() {
        for (const { listening, handlers } of topic.subscribers) {
          if (!listening) continue;
          handlers.onInterrupted();
          handlers.onListening();
        }
      },
    };
  }

  /** Ends all subscriptions; no handler is called afterwards. */
  close(): void {
    clearInterval(this.#pings);
    for (const { subscribers } of this.#topics.values()) subscribers.clear();
    this.#topics.clear();
    this.#connection?.disconnect();
  }

  #noteChange(name: string): void {
    if (this.#changed.size === 0) setImmediate(() => this.#flush());
    this.#changed.add(name);
  }

  /** Sends the changes of the iteration. A topic that was left and joined again needs no command. */
  #flush(): void {
    const begun: Topic[] = [];
    const ended: string[] = [];
    for (const name of this.#changed) {
      const topic = this.#topics.get(name);
      if (topic === undefined) continue;
      if (topic.subscribers.size > 0) begun.push(topic);
      else if (this.#topics.delete(name) && this.#asked.delete(name)) ended.push(name);
    }
    this.#changed.clear();
    if (begun.length > 0) this.#connection ??= this.#connect();
    if (this.#connection?.status !== 'ready') return;
    for (const names of this.#together(ended, (name) => name)) {
      const left = this.#options.isSharded
        ? this.#connection.sunsubscribe(...names)
        : this.#connection.unsubscribe(...names);
      left.catch(this.#reconnectOf(this.#lost));
    }
    this.#listenTo(this.#connection, begun);
  }

  /** Groups of topics that fit in one command. */
  #together<T>(all: readonly T[], nameOf: (one: T) => string): T[][] {
    const { isSharded, isOfCluster } = this.#options;
    if (!isSharded || !isOfCluster) return chunks(all);
    return [...Map.groupBy(all, (one) => calculateSlot(nameOf(one))).values()].flatMap((some) => chunks(some));
  }

  #listenTo(connection: Redis, topics: readonly Topic[]): void {
    const lost = this.#lost;
    const wanted = topics.filter(({ name }) => !this.#asked.has(name));
    for (const some of this.#together(wanted, ({ name }) => name)) {
      for (const { name } of some) this.#asked.add(name);
      const names = some.map(({ name }) => name);
      const asked = this.#options.isSharded ? connection.ssubscribe(...names) : connection.subscribe(...names);
      asked.then(() => {
        if (lost === this.#lost) for (const topic of some) this.#confirmAll(topic);
      }, this.#reconnectOf(lost));
    }
  }

  #confirmAll(topic: Topic): void {
    // The topic was left meanwhile; a new one of the same name has its own subscription.
    if (this.#topics.get(topic.name) !== topic) return;
    topic.listening = true;
    for (const subscriber of topic.subscribers) confirm(topic, subscriber);
  }

  #connect(): Redis {
    const connection = this.#redis.duplicate({ autoResubscribe: false, commandTimeout: COMMAND_TIMEOUT_MS });
    // `close` handles the loss; the command connection reports errors.
    connection.on('error', () => undefined);
    connection.on('ready', () => {
      this.#listenTo(connection, [...this.#topics.values()]);
      void this.#bearWitness(connection);
    });
    connection.on('close', () => this.#disconnected());
    // Also sent without a request, when the node loses a slot.
    connection.on('moved', () => {
      this.#options.onMoved();
      this.#reconnectOf(this.#lost)();
    });
    connection.on(this.#options.isSharded ? 'smessageBuffer' : 'messageBuffer', (name: Buffer, message: Buffer) => {
      const topic = this.#topics.get(name.toString());
      if (topic !== undefined) deliver(topic, message);
    });
    this.#pings = setInterval(() => {
      if (connection.status === 'ready') connection.ping().catch(this.#reconnectOf(this.#lost));
    }, PING_EVERY_MS);
    this.#pings.unref();
    return connection;
  }

  async #bearWitness(connection: Redis): Promise<void> {
    const { isSharded, isOfCluster } = this.#options;
    if (!isSharded || isOfCluster) return;
    const lost = this.#lost;
    await connection.ssubscribe(this.#witness).catch(this.#reconnectOf(lost));
    this.#isWitnessed = lost === this.#lost;
  }

  #disconnected(): void {
    this.#lost++;
    this.#isWitnessed = false;
    this.#asked.clear();
    for (const topic of this.#topics.values()) {
      topic.listening = false;
      for (const subscriber of topic.subscribers) {
        if (!subscriber.listening) continue;
        subscriber.listening = false;
        subscriber.handlers.onInterrupted();
      }
    }
  }

  /** Reconnects after a failed command, unless the connection was lost since. */
  #reconnectOf(lost: number): () => void {
    return () => {
      if (lost === this.#lost) this.#connection?.disconnect(true);
    };
  }
}

function deliver({ subscribers }: Topic, message: Buffer): void {
  for (const { listening, handlers } of subscribers) if (listening) handlers.onMessage(message);
}

function confirm(topic: Topic, subscriber: Subscriber): void {
  if (subscriber.listening || !topic.subscribers.has(subscriber)) return;
  subscriber.listening = true;
  subscriber.handlers.onListening();
}

function chunks<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < all.length; from += MAX_TOPICS) parts.push(all.slice(from, from + MAX_TOPICS));
  return parts;
}
