import type { Redis } from 'ioredis';

import type { RedisClient } from './redis-client.ts';

export interface SubscriptionHandlers {
  onMessage(text: string): void;
  /** The subscription has begun (again): messages before this call may have been missed. */
  onListening(): void;
}

/** Times are `performance.now()`, in milliseconds. */
export interface Received {
  /** When the subscription began. */
  readonly since: number;
  /** When the last answered ping was sent. */
  readonly until: number;
}

export interface Subscription {
  /** Every message published between these times has been delivered. Null while not subscribed. */
  readonly received: Received | null;
  stop(): void;
}

/** Pings prove up to when messages have been received, and find dead connections. */
const PING_EVERY_MS = 200;

/**
 * Subscribes to a pub/sub channel on a connection of its own, and again after a lost connection. In a cluster it
 * subscribes on the node that owns the channel's slot, where {@link publishToRedis} publishes, so it does not depend on
 * the cluster bus except while the slot moves.
 *
 * Guarantees: Redis answers a ping after all earlier messages, so `received` tells up to when no message is missing,
 * also while a connection is silent.
 * Omissions: messages that were published while not subscribed. Pub/sub stores nothing: catch up on `onListening`.
 */
export function subscribeToRedis(redis: RedisClient, channel: string, handlers: SubscriptionHandlers): Subscription {
  let node = redis.nodeOf(channel);
  let subscription = node && subscribeToNode(node, channel, handlers);
  const stopFollowing = redis.onMoved(() => {
    if (redis.nodeOf(channel) === node) return;
    subscription?.stop();
    node = redis.nodeOf(channel);
    subscription = node && subscribeToNode(node, channel, handlers);
  });
  return {
    get received() {
      return subscription?.received ?? null;
    },
    stop() {
      stopFollowing();
      subscription?.stop();
    },
  };
}

function subscribeToNode(node: Redis, channel: string, handlers: SubscriptionHandlers): Subscription {
  const connection = node.duplicate({ autoResubscribe: false });
  let received: Received | null = null;
  let stopped = false;
  let pinging = false;

  const reconnect = (): void => connection.disconnect(true);
  const listen = async (): Promise<void> => {
    try {
      await connection.subscribe(channel);
      if (stopped) return;
      const now = performance.now();
      received = { since: now, until: now };
      handlers.onListening();
    } catch {
      reconnect();
    }
  };
  const ping = async (): Promise<void> => {
    const before = received;
    if (pinging || before === null) return;
    pinging = true;
    const until = performance.now();
    try {
      await connection.ping();
      // Otherwise the connection was lost meanwhile, and the answer belongs to the earlier one.
      if (received === before) received = { since: before.since, until };
    } catch {
      reconnect();
    } finally {
      pinging = false;
    }
  };

  // `close` handles the loss; the command connection reports errors.
  connection.on('error', () => undefined);
  connection.on('ready', () => void listen());
  connection.on('close', () => {
    received = null;
  });
  connection.on('message', (_channel: string, text: string) => handlers.onMessage(text));
  const pings = setInterval(() => void ping(), PING_EVERY_MS);
  pings.unref();

  return {
    get received() {
      return received;
    },
    stop() {
      stopped = true;
      clearInterval(pings);
      connection.disconnect();
    },
  };
}

/** @throws `Fault` `store_unavailable`; the message may have been published all the same */
export async function publishToRedis(redis: RedisClient, channel: string, text: string): Promise<void> {
  await redis.send(channel, (node) => node.publish(channel, text));
}
