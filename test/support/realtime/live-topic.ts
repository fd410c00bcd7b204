import { decodeLiveMessage, liveTopic } from '#libs/platform/live/index.ts';
import { TopicSubscriptions } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** One value outside the log, as it was published. */
export interface HeardValue {
  readonly flags: number;
  readonly key: string;
  // What a test expects of a frame, it says.
  // eslint-disable-next-line typescript/no-explicit-any
  readonly frame: any;
}

export interface HeardTopic {
  /** Values published since the last call, in order: those before the call have come by then. */
  take(): Promise<HeardValue[]>;
  stop(): void;
}

/** Listens to a channel's topic as a realtime node does; resolves once it hears. */
export async function listenToTopic(
  { redis }: Pick<Platform, 'redis'>,
  organizationId: string,
  channelId: string,
): Promise<HeardTopic> {
  const topics = new TopicSubscriptions(redis);
  const topic = liveTopic(organizationId, channelId);
  let heard: HeardValue[] = [];
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
          else heard.push({ flags: item.flags, key: item.key, frame: JSON.parse(item.json.toString()) });
        }
      },
    });
  });
  return {
    async take() {
      // Messages of a topic come in order: once this one is here, all before it are.
      const mark = `mark-${++marks}`;
      const reached = new Promise<void>((resolve) => waiting.set(mark, resolve));
      await redis.send(topic, (node) => node.spublish(topic, `X 0 ${mark} {}`));
      await reached;
      waiting.delete(mark);
      const taken = heard;
      heard = [];
      return taken;
    },
    stop: () => topics.close(),
  };
}
