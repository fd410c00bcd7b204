/** The simplest implementation: Fastify, ioredis with its defaults, and the stored string passed through. */
import Fastify from 'fastify';
import { Redis } from 'ioredis';

import { answerTasks } from '../child-process.ts';

answerTasks<{ route: string; body: string; redisUrl: string }, { url: string }>(async ({ route, body, redisUrl }) => {
  const redis = new Redis(redisUrl);
  await redis.set('document', body);
  const app = Fastify();
  app.get(route, async (_request, reply) => {
    const stored = await redis.get('document');
    return reply.header('content-type', 'application/json').send(stored);
  });
  return { url: await app.listen({ host: '127.0.0.1', port: 0 }) };
});
