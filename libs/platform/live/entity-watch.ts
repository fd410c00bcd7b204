import type { EntityId } from '#libs/kernel/ids.ts';
import { WakeUp } from '#libs/platform/lifecycle/index.ts';
import type { TopicSubscriptions } from '#libs/platform/redis/index.ts';

import { FRAME_FLAG, decodeLiveMessage } from './frames.ts';
import { entityTopic } from './live.keys.ts';

interface WatchedEntity {
  readonly category: string;
  readonly organizationId: EntityId;
  readonly id: EntityId;
}

/** Pub/sub may lose the last frame of an entity. */
const RECHECK_MS = 5_000;

/**
 * Yields whenever one of the entities may have ended: once the topics of all are received, again after each interruption,
 * at a last frame, and every few seconds. The reader looks at the log, which decides.
 *
 * Guarantee: an entity whose last frame is published after the first `yield` causes another one.
 *
 * @throws the reason of `signal` once it aborts
 */
export async function* endsOf(
  topics: Pick<TopicSubscriptions, 'subscribe'>,
  entities: readonly WatchedEntity[],
  signal: AbortSignal,
): AsyncGenerator<void, never> {
  const sign = new WakeUp();
  const subscriptions = entities.map(({ category, organizationId, id }) =>
    topics.subscribe(entityTopic(category, organizationId, id), {
      onMessage(message) {
        const items = decodeLiveMessage(message);
        if (items.some((item) => item.kind === 'head' || (item.flags & FRAME_FLAG.last) !== 0)) sign.wake();
      },
      onListening: () => {
        if (subscriptions.every(({ listening }) => listening)) sign.wake();
      },
      onInterrupted: () => undefined,
    }),
  );
  signal.addEventListener('abort', sign.wake, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      await sign.sleep(RECHECK_MS);
      signal.throwIfAborted();
      yield;
    }
  } finally {
    signal.removeEventListener('abort', sign.wake);
    for (const subscription of subscriptions) subscription.stop();
  }
}
