import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

import type { RedisClient } from './redis-client.ts';
import { probeOf } from './rights.keys.ts';

export interface SubscriptionHandlers {
  onMessage(text: string): void;
  /** The subscription has begun (again): messages before this call may have been missed. */
  onListening(): void;
}

/** Times are `performance.now()`, in milliseconds. */
export interface Received {
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

/** Probes prove up to when messages have been received; pings find dead connections. */
const PROBE_EVERY_MS = 200;
/** A subscription whose probes are published and do not arrive for so long is begun again. */
const SILENT_MS = 1_500;

/**
 * Subscribes to a pub/sub channel on a connection of its own, and again after a lost connection. In a cluster it
 * subscribes on the node that owns the channel's slot, where {@link publishToRedis} publishes, so it does not depend on
 * the cluster bus except while the slot moves.
 *
 * Guarantees: the process publishes probes to a channel of its own, and Redis delivers them after all earlier messages. So
 * `received` tells up to when no message is missing, also while a connection is silent, or answers pings without
 * delivering messages.
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
  const probeChannel = probeOf(randomUUID());
  let received: Received | null = null;
  let stopped = false;
  let probing = false;

  const reconnect = (): void => connection.disconnect(true);
  const listen = async (): Promise<void> => {
    try {
      await connection.subscribe(channel, probeChannel);
      if (stopped) return;
      const now = performance.now();
      received = { since: now, until: now };
      handlers.onListening();
    } catch {
      reconnect();
    }
  };
  const probe = async (): Promise<void> => {
    const before = received;
    if (probing || before === null) return;
    probing = true;
    const at = performance.now();
    try {
      // A failure of the command connection is not one of the subscription: `until` stays as it is.
      const published = node.publish(probeChannel, String(at)).then(
        () => true,
        () => false,
      );
      await connection.ping();
      if ((await published) && received?.since === before.since && at - received.until > SILENT_MS) reconnect();
    } catch {
      reconnect();
    } finally {
      probing = false;
    }
  };

  // `close` handles the loss; the command connection reports errors.
  connection.on('error', () => undefined);
  connection.on('ready', () => void listen());
  connection.on('close', () => {
    received = null;
  });
  connection.on('message', (from: string, text: string) => {
    if (from === channel) handlers.onMessage(text);
    // A probe of an earlier subscription says nothing about this one.
    else if (received !== null && Number(text) > received.until)
      received = { since: received.since, until: Number(text) };
  });
  const probes = setInterval(() => void probe(), PROBE_EVERY_MS);
  probes.unref();

  return {
    get received() {
      return received;
    },
    stop() {
      stopped = true;
      clearInterval(probes);
      connection.disconnect();
    },
  };
}

/** @throws `Fault` `store_unavailable`; the message may have been published all the same */
export async function publishToRedis(redis: RedisClient, channel: string, text: string): Promise<void> {
  await redis.send(channel, (node) => node.publish(channel, text));
}
