import calculateSlot from 'cluster-key-slot';
import type { Redis } from 'ioredis';

export interface TopicHandlers {
  /**
   * The memory of a message is that of all that came in with it: copy what is to be kept for long.
   * None of the handlers may throw.
   */
  onMessage(message: Buffer): void;
  /** From now on everything is heard. What came before, or between `onDeaf` and now, may have been missed. */
  onListening(): void;
  /** Messages may be missed from now on, until `onListening`. */
  onDeaf(): void;
}

export interface TopicSubscription {
  /** Whether messages are heard now, as far as is known. */
  readonly listening: boolean;
  /** No handler is called any more. */
  stop(): void;
}

/** A topic that somebody listens to, or did a moment ago. */
interface Topic {
  readonly name: string;
  readonly subscribers: Set<Subscriber>;
  listening: boolean;
}

interface Subscriber {
  readonly handlers: TopicHandlers;
  listening: boolean;
}

/** A connection over which nothing comes may be dead, or its Redis may hang: asked every so often. */
const PING_EVERY_MS = 3_000;
/** Topics in one command: so many that they cost little, so few that the others of Redis hardly wait. */
const MAX_TOPICS = 500;

export interface NodeTopicsOptions {
  /** A node of a cluster takes the topics of one slot in a command, and may tell that it has them no longer. */
  readonly isOfCluster: boolean;
  /** The node has refused a topic, or given it up: another has it. All are deaf until they are heard again. */
  onMoved(): void;
}

/**
 * Subscriptions to topics of one node, over one connection, which is opened with the first of them. What is begun and
 * ended in one turn of the event loop is sent together. Guarantees and omissions: those of `TopicSubscriptions`.
 */
export class NodeTopics {
  readonly #redis: Redis;
  readonly #options: NodeTopicsOptions;
  readonly #topics = new Map<string, Topic>();
  /** Names that the present connection has subscribed to, or is about to. */
  readonly #asked = new Set<string>();
  /** Names whose subscription has begun or ended in this turn. */
  readonly #changed = new Set<string>();
  #connection: Redis | null = null;
  /** Counts the connections that were lost: what belongs to an earlier one says nothing of this one. */
  #lost = 0;
  #pings: NodeJS.Timeout | undefined;

  /** @param redis whose Redis it is; the connection for subscriptions is made like it */
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
    // Others listen to it already, so nothing of Redis will tell.
    if (known.listening) queueMicrotask(() => known.listening && heard(known, subscriber));
    return {
      get listening() {
        return subscriber.listening && subscribers.has(subscriber);
      },
      stop: () => {
        if (subscribers.delete(subscriber) && subscribers.size === 0) this.#noteChange(name);
      },
    };
  }

  /** Ends all subscriptions; no handler is called any more. */
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

  /** Only now does it matter who listens: one who has stopped may be back, and nothing is to be sent. */
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
      this.#connection.sunsubscribe(...names).catch(this.#reconnectOf(this.#lost));
    }
    this.#listenTo(this.#connection, begun);
  }

  /** What can go in one command. */
  #together<T>(all: readonly T[], nameOf: (one: T) => string): T[][] {
    if (!this.#options.isOfCluster) return chunks(all);
    return [...Map.groupBy(all, (one) => calculateSlot(nameOf(one))).values()].flatMap((some) => chunks(some));
  }

  #listenTo(connection: Redis, topics: readonly Topic[]): void {
    const lost = this.#lost;
    const wanted = topics.filter(({ name }) => !this.#asked.has(name));
    for (const some of this.#together(wanted, ({ name }) => name)) {
      for (const { name } of some) this.#asked.add(name);
      connection.ssubscribe(...some.map(({ name }) => name)).then(() => {
        if (lost === this.#lost) for (const topic of some) this.#heard(topic);
      }, this.#reconnectOf(lost));
    }
  }

  #heard(topic: Topic): void {
    // One that ended meanwhile is another's now, with a subscription of its own behind this one.
    if (this.#topics.get(topic.name) !== topic) return;
    topic.listening = true;
    for (const subscriber of topic.subscribers) heard(topic, subscriber);
  }

  #connect(): Redis {
    const connection = this.#redis.duplicate({ autoResubscribe: false });
    // The loss of the connection is the message; who needs to know why looks at the other connection's errors.
    connection.on('error', () => undefined);
    connection.on('ready', () => this.#listenTo(connection, [...this.#topics.values()]));
    connection.on('close', () => this.#deaf());
    // Also what nobody has asked for: that the node has the topics of some slot no longer.
    connection.on('moved', () => {
      this.#options.onMoved();
      this.#reconnectOf(this.#lost)();
    });
    connection.on('smessageBuffer', (name: Buffer, message: Buffer) => {
      const topic = this.#topics.get(name.toString());
      if (topic === undefined) return;
      for (const { listening, handlers } of topic.subscribers) if (listening) handlers.onMessage(message);
    });
    this.#pings = setInterval(() => {
      if (connection.status === 'ready') connection.ping().catch(this.#reconnectOf(this.#lost));
    }, PING_EVERY_MS);
    this.#pings.unref();
    return connection;
  }

  #deaf(): void {
    this.#lost++;
    this.#asked.clear();
    for (const topic of this.#topics.values()) {
      topic.listening = false;
      for (const subscriber of topic.subscribers) {
        if (!subscriber.listening) continue;
        subscriber.listening = false;
        subscriber.handlers.onDeaf();
      }
    }
  }

  /** What to do when a command fails on the connection that there was after `lost` others. */
  #reconnectOf(lost: number): () => void {
    return () => {
      if (lost === this.#lost) this.#connection?.disconnect(true);
    };
  }
}

function heard(topic: Topic, subscriber: Subscriber): void {
  if (subscriber.listening || !topic.subscribers.has(subscriber)) return;
  subscriber.listening = true;
  subscriber.handlers.onListening();
}

function chunks<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < all.length; from += MAX_TOPICS) parts.push(all.slice(from, from + MAX_TOPICS));
  return parts;
}
