export { startPrivateRedis } from './private-redis.ts';
