import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { NodeTopics, type OwnTopic, type TopicHandlers, type TopicSubscription } from './node-topics.ts';
import type { RedisClient } from './redis-client.ts';
import { probeOf } from './rights.keys.ts';

interface Tracked {
  readonly name: string;
  readonly handlers: TopicHandlers;
  node: Redis | null;
  subscription: TopicSubscription | null;
}

export interface TopicOptions {
  /** Sharded pub/sub, which scales with the nodes of a cluster. Default: true. */
  readonly isSharded?: boolean;
}

/**
 * Subscriptions to any number of topics of pub/sub, over one connection to each node that owns some of them.
 * Changes of one iteration of the event loop are sent together.
 *
 * Guarantees: between `onListening` and `onInterrupted` no message of the topic is lost, and messages arrive in the order of
 * publication, except in the last seconds of a connection that died silently, or of a topic that moved to another node
 * (`onInterrupted` is then called within about 5 s). Lost connections are opened again, and topics are followed to their
 * current node; `onListening` is then called again. Subscriptions to one topic share one subscription in Redis.
 *
 * Omissions: messages that were published while not subscribed. Pub/sub stores nothing: catch up on `onListening`.
 * Errors are not reported: the subscription then does not listen.
 */
export class TopicSubscriptions {
  readonly #redis: RedisClient;
  readonly #nodes = new Map<Redis, NodeTopics>();
  readonly #tracked = new Set<Tracked>();
  readonly #isSharded: boolean;
  readonly #stopFollowing: () => void;

  /** @param redis the connections for subscriptions are duplicates of its connections */
  constructor(redis: RedisClient, { isSharded = true }: TopicOptions = {}) {
    this.#redis = redis;
    this.#isSharded = isSharded;
    this.#stopFollowing = redis.onMoved(() => this.#follow());
  }

  /** Never calls `onListening` before it returns. */
  subscribe(name: string, handlers: TopicHandlers): TopicSubscription {
    // Topics cannot move on one server.
    if (this.#redis.isOneServer) return this.#subscribeAt(this.#redis.nodeOf(name), name, handlers);
    const tracked: Tracked = { name, handlers, node: null, subscription: null };
    this.#tracked.add(tracked);
    this.#attach(tracked);
    return {
      get listening() {
        return tracked.subscription?.listening ?? false;
      },
      stop: () => {
        this.#tracked.delete(tracked);
        tracked.subscription?.stop();
        tracked.subscription = null;
      },
    };
  }

  /** The topic, if this process receives it now; always null in a cluster. */
  own(name: string): OwnTopic | null {
    const node = this.#redis.isOneServer ? this.#redis.nodeOf(name) : null;
    return (node && this.#nodes.get(node)?.own(name)) ?? null;
  }

  /** Ends all subscriptions; no handler is called any more. */
  close(): void {
    this.#stopFollowing();
    this.#tracked.clear();
    for (const node of this.#nodes.values()) node.close();
    this.#nodes.clear();
  }

  #attach(tracked: Tracked): void {
    tracked.node = this.#redis.nodeOf(tracked.name);
    tracked.subscription = this.#subscribeAt(tracked.node, tracked.name, tracked.handlers);
  }

  #subscribeAt(node: Redis | null, name: string, handlers: TopicHandlers): TopicSubscription {
    if (node === null) return { listening: false, stop: () => undefined };
    let topics = this.#nodes.get(node);
    if (topics === undefined) {
      const onMoved = (): void => this.#redis.refresh();
      const isOfCluster = !this.#redis.isOneServer;
      topics = new NodeTopics(node, { isSharded: this.#isSharded, isOfCluster, onMoved });
      this.#nodes.set(node, topics);
    }
    return topics.subscribe(name, handlers);
  }

  /** Moves subscriptions to the current nodes of their topics. */
  #follow(): void {
    for (const tracked of this.#tracked) {
      if (this.#redis.nodeOf(tracked.name) === tracked.node) continue;
      const wasListening = tracked.subscription?.listening ?? false;
      tracked.subscription?.stop();
      this.#attach(tracked);
      if (wasListening) tracked.handlers.onInterrupted();
    }
    const used = new Set([...this.#tracked].map(({ node }) => node));
    for (const [node, topics] of this.#nodes) {
      if (used.has(node)) continue;
      topics.close();
      this.#nodes.delete(node);
    }
  }
}

interface SubscriptionHandlers {
  onMessage(text: string): void;
  /** The subscription has begun (again): messages before this call may have been missed. */
  onListening(): void;
}

/** Times are `performance.now()`, in milliseconds. */
interface Received {
  /** When the subscription began. */
  readonly since: number;
  /** When the last probe was published that has arrived. */
  readonly until: number;
}

export interface Subscription {
  /** Every message published between these times has been delivered. Null while not subscribed. */
  readonly received: Received | null;
  stop(): void;
}

const PROBE_EVERY_MS = 200;
/** A subscription whose probes are published and do not arrive for so long is begun again. */
const SILENT_MS = 1_500;

/**
 * Subscribes to a pub/sub channel on a connection of its own, which no other messages delay. In a cluster it subscribes on
 * the node that owns the channel's slot, where {@link publishToRedis} publishes, so it does not depend on the cluster bus
 * except while the slot moves.
 *
 * Guarantees: the process publishes probes to a channel of its own, and Redis delivers them after all earlier messages. So
 * `received` tells up to when no message is missing, also while a connection is silent, or answers pings without
 * delivering messages.
 * Omissions: messages that were published while not subscribed. Pub/sub stores nothing: catch up on `onListening`.
 */
export function subscribeToRedis(redis: RedisClient, channel: string, handlers: SubscriptionHandlers): Subscription {
  const probeChannel = probeOf(randomUUID(), channel);
  let received: Received | null = null;
  let probing = false;

  const onInterrupted = (): void => {
    received = null;
  };
  const begin = (): TopicSubscriptions => {
    const topics = new TopicSubscriptions(redis, { isSharded: false });
    topics.subscribe(probeChannel, {
      onMessage(text) {
        const until = Number(text.toString());
        // A probe of an earlier subscription says nothing about this one.
        if (received !== null && until > received.until) received = { since: received.since, until };
      },
      onListening: () => undefined,
      onInterrupted,
    });
    topics.subscribe(channel, {
      onMessage: (text) => handlers.onMessage(text.toString()),
      onListening() {
        const now = performance.now();
        received = { since: now, until: now };
        handlers.onListening();
      },
      onInterrupted,
    });
    return topics;
  };
  let topics = begin();

  const probe = async (): Promise<void> => {
    const before = received;
    if (probing || before === null) return;
    probing = true;
    const at = performance.now();
    try {
      await publishToRedis(redis, probeChannel, String(at));
      // Only published probes count: a failure of the command connection is not one of the subscription.
      if (received?.since !== before.since || at - received.until <= SILENT_MS) return;
      topics.close();
      received = null;
      topics = begin();
    } catch {
      // `until` stays as it is.
    } finally {
      probing = false;
    }
  };
  const probes = setInterval(() => void probe(), PROBE_EVERY_MS);
  probes.unref();

  return {
    get received() {
      return received;
    },
    stop() {
      clearInterval(probes);
      topics.close();
      received = null;
    },
  };
}

/** @throws `Fault` `store_unavailable`; the message may have been published all the same */
export async function publishToRedis(redis: RedisClient, channel: string, text: string): Promise<void> {
  await redis.send(channel, (node) => node.publish(channel, text));
}
