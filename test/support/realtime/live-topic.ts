import { decodeLiveMessage, channelTopic } from '#libs/platform/live/index.ts';
import { TopicSubscriptions } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** A published value. */
export interface PublishedValue {
  readonly flags: number;
  readonly key: string;
  // Tests state the shape that they expect.
  // eslint-disable-next-line typescript/no-explicit-any
  readonly frame: any;
}

export interface TopicRecorder {
  /** Values published since the last call and before this one, in order. */
  take(): Promise<PublishedValue[]>;
  stop(): void;
}

/** Subscribes to a channel's topic as a realtime node does; resolves once it is subscribed. */
export async function subscribeToTopic(
  { redis }: Pick<Platform, 'redis'>,
  organizationId: string,
  channelId: string,
): Promise<TopicRecorder> {
  const topics = new TopicSubscriptions(redis);
  const topic = channelTopic(organizationId, channelId);
  let received: PublishedValue[] = [];
  let marks = 0;
  const waiting = new Map<string, () => void>();
  await new Promise<void>((resolve) => {
    topics.subscribe(topic, {
      onListening: resolve,
      onInterrupted: () => undefined,
      onMessage: (message) => {
        for (const item of decodeLiveMessage(message)) {
          if (item.kind !== 'value') continue;
          const reached = waiting.get(item.key);
          if (reached !== undefined) reached();
          else received.push({ flags: item.flags, key: item.key, frame: JSON.parse(item.json.toString()) });
        }
      },
    });
  });
  return {
    async take() {
      // Messages of a topic arrive in order: once this one has arrived, so have all before it.
      const mark = `mark-${++marks}`;
      const reached = new Promise<void>((resolve) => waiting.set(mark, resolve));
      await redis.send(topic, (node) => node.spublish(topic, `X 0 ${mark} {}`));
      await reached;
      waiting.delete(mark);
      const taken = received;
      received = [];
      return taken;
    },
    stop: () => topics.close(),
  };
}
