import { randomUUID } from 'node:crypto';

import type { RedisClient } from './redis-client.ts';
import { probeOf } from './rights.keys.ts';
import { TopicSubscriptions } from './topics.ts';

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
