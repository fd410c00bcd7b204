/** The ceiling for reads: Fastify answers bytes from memory, after one turn as any real I/O would take. */
import { setImmediate as turn } from 'node:timers/promises';

import Fastify from 'fastify';

import { answerTasks } from '../child-process.ts';

answerTasks<{ route: string; body: string }, { url: string }>(async ({ route, body }) => {
  const bytes = Buffer.from(body);
  const app = Fastify();
  app.get(route, async (_request, reply) => {
    await turn();
    return reply.header('content-type', 'application/json').send(bytes);
  });
  return { url: await app.listen({ host: '127.0.0.1', port: 0 }) };
});
