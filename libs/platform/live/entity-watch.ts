import type { EntityId } from '#libs/kernel/ids.ts';
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
  let wake = Promise.withResolvers<void>();
  const subscriptions = entities.map(({ category, organizationId, id }) =>
    topics.subscribe(entityTopic(category, organizationId, id), {
      onMessage(message) {
        const items = decodeLiveMessage(message);
        if (items.some((item) => item.kind === 'head' || (item.flags & FRAME_FLAG.last) !== 0)) wake.resolve();
      },
      onListening: () => {
        if (subscriptions.every(({ listening }) => listening)) wake.resolve();
      },
      onInterrupted: () => undefined,
    }),
  );
  const onAbort = (): void => wake.resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const timer = setTimeout(() => wake.resolve(), RECHECK_MS);
      await wake.promise.finally(() => clearTimeout(timer));
      // What follows from here on is for the next iteration.
      wake = Promise.withResolvers();
      signal.throwIfAborted();
      yield;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    for (const subscription of subscriptions) subscription.stop();
  }
}
