/** Redis: a connection that fails fast and never sends a command twice, and what is kept beside read models. */
export { FunctionLibrary } from './function-library.ts';
export { RedisIdempotencyStore } from './idempotency-store.ts';
export { guarded, connectRedis, redisFault, waitForRedis } from './redis.ts';
export type { RedisConnectionOptions } from './redis.ts';
export { publishToRedis, subscribeToRedis } from './subscription.ts';
export type { Subscription, SubscriptionHandlers } from './subscription.ts';
export { TopicSubscriptions } from './topics.ts';
export type { TopicHandlers, TopicSubscription } from './topics.ts';
