export { freePort } from './free-port.ts';
export { startPrivateRedis, type PrivateRedis, type PrivateRedisOptions } from './private-redis.ts';
