import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';

import { expect, it, onTestFinished } from 'vitest';

import { HttpError } from './errors.ts';
import { ConcurrencyLimit } from './concurrency-limit.ts';

const places = () =>
  new ConcurrencyLimit({
    max: 3,
    maxOfKey: 2,
    refusal: () => new HttpError(429, 'too_many', 'Too many at the same time'),
  });

/** The response to a request whose client can leave. */
async function received() {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const request = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  client.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  const [, response] = await request;
  return { client, response };
}

it('places are limited for a key and in all, and released once', () => {
  const all = places();
  const [first, second] = [all.take('a'), all.take('a')];
  expect(() => all.take('a')).toThrow('Too many');
  const third = all.take('b');
  expect(() => all.take('b')).toThrow('Too many');
  for (const release of [third, third, third]) release();
  const again = all.take('b');
  expect(() => all.take('b')).toThrow('Too many');
  for (const release of [first, second, again]) release();
  for (const key of ['a', 'a', 'b']) all.take(key);
});

it('a place is taken until the response ends', async () => {
  const all = places();
  const { response } = await received();
  for (let taken = 0; taken < 2; taken++) all.takeUntilEnd('a', response);
  expect(() => all.take('a')).toThrow('Too many');
  const closed = once(response, 'close');
  response.end();
  await closed;
  expect(() => all.take('a')()).not.toThrow();
});

it('the place of a client that left before is released', async () => {
  const all = places();
  const { client, response } = await received();
  const closed = once(response, 'close');
  client.destroy();
  await closed;
  for (let taken = 0; taken < 2; taken++) all.takeUntilEnd('a', response);
  response.end();
  await new Promise((resolve) => setImmediate(resolve));
  expect(() => all.take('a')()).not.toThrow();
});
