import type { Redis } from 'ioredis';

import { NodeTopics } from './node-topics.ts';
import type { TopicHandlers, TopicSubscription } from './node-topics.ts';
import type { RedisClient } from './redis-client.ts';

/** A subscription, and the node that it is on at present. */
interface Placed {
  readonly name: string;
  readonly handlers: TopicHandlers;
  node: Redis | null;
  subscription: TopicSubscription | null;
}

/**
 * Subscriptions to any number of topics (sharded publish and subscribe), over one connection to each node of Redis
 * that has some of them. What is begun and ended in one turn of the event loop is sent together.
 *
 * Guarantees: between `onListening` and `onDeaf` no message of the topic is lost, and they come in the order
 * of publication, except those of the last seconds of a connection that died silently, or of a topic that moved to
 * another node (`onDeaf` then comes within about 5 s). A lost connection is opened again by itself, a topic is
 * followed to where it is now; `onListening` is then called again. Subscriptions to one topic share it in Redis.
 *
 * Omits: what was published while nobody listened. Publish and subscribe keeps nothing: on `onListening`,
 * catch up. Errors are not told: whoever cannot listen stays deaf.
 */
export class TopicSubscriptions {
  readonly #redis: RedisClient;
  readonly #nodes = new Map<Redis, NodeTopics>();
  readonly #placed = new Set<Placed>();
  readonly #stopFollowing: () => void;

  /** @param redis whose Redis it is; the connections for subscriptions are made like it */
  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#stopFollowing = redis.onMoved(() => this.#follow());
  }

  /** `onListening` is never called before this returns. */
  subscribe(name: string, handlers: TopicHandlers): TopicSubscription {
    // Nothing moves on one server, so there is nothing to remember.
    if (this.#redis.isOneServer) return this.#subscribeAt(this.#redis.nodeOf(name), name, handlers);
    const placed: Placed = { name, handlers, node: null, subscription: null };
    this.#placed.add(placed);
    this.#place(placed);
    return {
      get listening() {
        return placed.subscription?.listening ?? false;
      },
      stop: () => {
        this.#placed.delete(placed);
        placed.subscription?.stop();
        placed.subscription = null;
      },
    };
  }

  /** Ends all subscriptions; no handler is called any more. */
  close(): void {
    this.#stopFollowing();
    this.#placed.clear();
    for (const node of this.#nodes.values()) node.close();
    this.#nodes.clear();
  }

  #place(placed: Placed): void {
    placed.node = this.#redis.nodeOf(placed.name);
    placed.subscription = this.#subscribeAt(placed.node, placed.name, placed.handlers);
  }

  #subscribeAt(node: Redis | null, name: string, handlers: TopicHandlers): TopicSubscription {
    if (node === null) return { listening: false, stop: () => undefined };
    let topics = this.#nodes.get(node);
    if (topics === undefined) {
      const onMoved = (): void => this.#redis.refresh();
      topics = new NodeTopics(node, { isOfCluster: !this.#redis.isOneServer, onMoved });
      this.#nodes.set(node, topics);
    }
    return topics.subscribe(name, handlers);
  }

  /** Those whose node is another now are deaf until they are heard there. */
  #follow(): void {
    for (const placed of this.#placed) {
      if (this.#redis.nodeOf(placed.name) === placed.node) continue;
      const wasListening = placed.subscription?.listening ?? false;
      placed.subscription?.stop();
      this.#place(placed);
      if (wasListening) placed.handlers.onDeaf();
    }
    const used = new Set([...this.#placed].map(({ node }) => node));
    for (const [node, topics] of this.#nodes) {
      if (used.has(node)) continue;
      topics.close();
      this.#nodes.delete(node);
    }
  }
}
