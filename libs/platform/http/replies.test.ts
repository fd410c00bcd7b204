import Fastify from 'fastify';
import { expect, it } from 'vitest';

import { sendJson, sendPage, type SentPage } from './replies.ts';

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

it('sends short ASCII as text, and other JSON as its bytes', async () => {
  const app = Fastify();
  const json = ['{"name":"a"}', '{"name":"ä"}', `"${'x'.repeat(2_046)}"`, `"${'x'.repeat(2_047)}"`];
  const sent: unknown[] = [];
  app.addHook('onSend', (_request, _reply, payload, done) => {
    sent.push(payload);
    done();
  });
  app.get('/:index', (request, reply) =>
    sendJson(reply, Buffer.from(json[Number((request.params as { index: string }).index)] ?? '')),
  );
  for (const [index, text] of json.entries()) {
    const reply = await app.inject(`/${index}`);
    expect(reply.payload).toBe(text);
    expect(reply.headers['content-length']).toBe(String(Buffer.byteLength(text)));
  }
  expect(sent.map((payload) => typeof payload)).toEqual(['string', 'object', 'string', 'object']);
  await app.close();
});
