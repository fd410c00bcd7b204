/** Redis: connections that fail fast and never send a command twice, functions, batches and pub/sub. */
export { atEndOfIteration, LoopBatches, type LoopBatchesOptions } from './loop-batches.ts';
export { FunctionLibrary, valuesOf } from './function-library.ts';
export { connectRedis, waitForRedis } from './redis.ts';
export type { FunctionCall, RedisClient } from './redis-client.ts';
export { TopicSubscriptions, publishToRedis, subscribeToRedis, type Subscription } from './topics.ts';
export type { OwnTopic, TopicSubscription } from './node-topics.ts';
export { missingRight } from './server-check.ts';
export { bytesOf, isReplyError, textsOf } from './redis-faults.ts';
export type { Values } from './redis-faults.ts';
