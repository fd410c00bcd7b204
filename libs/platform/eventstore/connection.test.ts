import { afterEach, expect, test } from 'vitest';
import { EventStoreConnection } from './connection.ts';

let opened: EventStoreConnection | undefined;
afterEach(() => opened?.close());

const open = (url: string) => (opened = new EventStoreConnection({ url }));

test('a closed connection stays closed, and does not affect others of the process', async () => {
  const first = open('esdb://127.0.0.1:1?tls=false');
  const second = open('esdb://127.0.0.1:1?tls=false');
  await first.close();
  await first.close();
  expect(() => first.client).toThrow('closed');
  expect(second.client).toBeDefined();
});

test.each([
  'esdb://127.0.0.1:2113',
  'esdb://127.0.0.1:2113/?tls=false',
  'esdb://admin:changeit@127.0.0.1:2113?tls=true',
  'esdb+discover://a:1,b:2,c:3?nodePreference=leader&keepAliveInterval=20000',
])('%s is a connection string', (url) => {
  expect(open(url).client).toBeDefined();
});

test.each(['', 'http://127.0.0.1:2113', '127.0.0.1:2113', 'esdb://', 'esdb://?tls=false'])(
  '"%s" is refused with the form that is expected',
  (url) => {
    expect(() => open(url)).toThrow('esdb://host:2113?tls=false');
  },
);

test('a URL that the client cannot parse is refused with the reason, and without its password', () => {
  const attempt = () => open('esdb://admin:secret@host:port?tls=false');
  expect(attempt).toThrow(/the event store URL must look like .*port number/);
  expect(attempt).not.toThrow(/secret/);
  expect(() => open('esdb://admin:secret@host:1?tls=maybe')).toThrow(/true or false/);
  expect(() => open('esdb://admin:secret@ho st$:1')).not.toThrow(/secret/);
});
