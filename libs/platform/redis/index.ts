/** Redis: connections that fail fast and never send a command twice, functions, batches and pub/sub. */
export { atEndOfTurn, TurnBatches } from './turn-batches.ts';
export { FunctionLibrary } from './function-library.ts';
export { connectRedis, redisAddresses, waitForRedis } from './redis.ts';
export type { FunctionCall, RedisClient, Reply } from './redis-client.ts';
export { guarded, redisFault } from './redis-faults.ts';
export type { RedisConnectionOptions } from './redis.ts';
export { publishToRedis, subscribeToRedis } from './subscription.ts';
export type { Subscription, SubscriptionHandlers } from './subscription.ts';
export { TopicSubscriptions } from './topics.ts';
export type { TopicHandlers, TopicSubscription } from './node-topics.ts';
export { bytesOf, textsOf } from './redis-faults.ts';
