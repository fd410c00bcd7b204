import Fastify from 'fastify';
import { expect, it } from 'vitest';

import { sendPage, type SentPage } from './replies.ts';

it('sends the items of a page, and its own meta each time, whether its body is kept or not', async () => {
  const app = Fastify();
  const items = [Buffer.from('{"name":"ä"}'), Buffer.from('2')];
  const sent: SentPage = { meta: '', body: null };
  const metaOf = (page: number) => ({ total: 2, has_next: false, has_previous: page > 1, page, next_cursor: null });
  app.get('/:page', (request, reply) =>
    sendPage(reply, items, metaOf(Number((request.params as { page: string }).page)), sent),
  );
  const bodies: unknown[] = [];
  for (const page of [1, 1, 2, 1]) {
    const reply = await app.inject(`/${page}`);
    expect(reply.json()).toEqual({ items: [{ name: 'ä' }, 2], meta: metaOf(page) });
    bodies.push(sent.body);
  }
  expect(bodies[1]).toBe(bodies[0]);
  await app.close();
});
