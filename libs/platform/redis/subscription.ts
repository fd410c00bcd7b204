import type { Redis } from 'ioredis';

import type { RedisClient } from './redis-client.ts';

export interface SubscriptionHandlers {
  onMessage(text: string): void;
  /** The subscription has begun, or has begun again: messages before this call may have been missed. */
  onListening(): void;
}

/** Times are `performance.now()`, in milliseconds. */
export interface Received {
  /** When the subscription began. */
  readonly since: number;
  /** When the newest ping that Redis has answered was sent. */
  readonly until: number;
}

export interface Subscription {
  /** Every message published between these two times has been delivered. Null while none are received. */
  readonly received: Received | null;
  stop(): void;
}

/** Pings prove how far messages have been received, and find a connection that is dead. */
const PING_EVERY_MS = 200;

/**
 * Subscribes to a pub/sub channel on a connection of its own, and again whenever that was lost. In a cluster it listens
 * on the node that has the channel's slot, where {@link publishToRedis} publishes: nothing depends on what nodes tell
 * each other, except while the slot moves.
 *
 * Guarantees: Redis answers a ping behind all messages that were published before it, so `received` says up to which
 * time no message is missing, also while a connection is silent.
 * Omits: what was published while nobody listened. Pub/sub keeps nothing: on `onListening`, catch up.
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
      // Otherwise the connection was lost meanwhile, and this answer belongs to the one before.
      if (received === before) received = { since: before.since, until };
    } catch {
      reconnect();
    } finally {
      pinging = false;
    }
  };

  // The loss of the connection is the message; the errors of the other connection say why.
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
