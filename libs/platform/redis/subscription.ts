import type { Redis } from 'ioredis';

import type { RedisClient } from './redis-client.ts';

export interface SubscriptionHandlers {
  onMessage(text: string): void;
  /** The subscription stands: whatever is published from now on is heard. What came before may have been missed. */
  onListening(): void;
  /** Messages may be missed from now on, until `onListening`. */
  onDeaf(): void;
}

export interface Subscription {
  /** Whether messages are heard now, as far as is known. */
  readonly listening: boolean;
  stop(): void;
}

/** A connection over which nothing comes may be dead, or its Redis may hang: asked every so often. */
const PING_EVERY_MS = 3_000;

/**
 * Subscribes to a pub/sub channel on a connection of its own, and again whenever that was lost. In a cluster it listens
 * on the node that has the channel's slot, where {@link publishToRedis} publishes: nothing depends on what nodes tell
 * each other, except while the slot moves.
 *
 * Guarantees: between `onListening` and `onDeaf` no message was lost, except those of the last seconds of a
 * connection that died silently (`onDeaf` then comes within about 5 s).
 * Omits: what was published while nobody listened. Pub/sub keeps nothing: on `onListening`, catch up.
 */
export function subscribeToRedis(redis: RedisClient, channel: string, handlers: SubscriptionHandlers): Subscription {
  let node = redis.nodeOf(channel);
  let subscription = node && subscribeToNode(node, channel, handlers);
  const stopFollowing = redis.onMoved(() => {
    if (redis.nodeOf(channel) === node) return;
    const wasListening = subscription?.listening ?? false;
    subscription?.stop();
    node = redis.nodeOf(channel);
    subscription = node && subscribeToNode(node, channel, handlers);
    if (wasListening) handlers.onDeaf();
  });
  return {
    get listening() {
      return subscription?.listening ?? false;
    },
    stop() {
      stopFollowing();
      subscription?.stop();
    },
  };
}

function subscribeToNode(node: Redis, channel: string, handlers: SubscriptionHandlers): Subscription {
  const connection = node.duplicate({ autoResubscribe: false });
  let listening = false;
  let stopped = false;

  const reconnect = (): void => connection.disconnect(true);
  const deaf = (): void => {
    if (!listening) return;
    listening = false;
    if (!stopped) handlers.onDeaf();
  };
  const listen = async (): Promise<void> => {
    try {
      await connection.subscribe(channel);
      if (stopped) return;
      listening = true;
      handlers.onListening();
    } catch {
      reconnect();
    }
  };
  const ping = (): void => {
    if (connection.status === 'ready') connection.ping().catch(reconnect);
  };

  // The loss of the connection is the message; who needs to know why looks at the other connection's errors.
  connection.on('error', () => undefined);
  connection.on('ready', () => void listen());
  connection.on('close', deaf);
  connection.on('message', (_channel: string, text: string) => handlers.onMessage(text));
  const pings = setInterval(ping, PING_EVERY_MS);
  pings.unref();

  return {
    get listening() {
      return listening;
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
