import { expect, test } from 'vitest';
import { createLogger } from './logger.ts';

const key = 'parley_live_0J5FBRv15xJsLA6diwX8FgnCfZx1TdiFyLZai8YvdsP2MHhEE';

const ticket = `parley_ticket_s3cret${'x'.repeat(37)}`;
const offer = `ticket.${ticket}`;

function linesOf(log: (logger: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  log(createLogger({}, { write: (line) => lines.push(line) }));
  return lines.join('');
}

test('a line is JSON with the level by name and the time', () => {
  const line: unknown = JSON.parse(linesOf((log) => log.info({ n: 1 }, 'hello')));
  expect(line).toMatchObject({ level: 'info', n: 1, msg: 'hello', time: expect.stringMatching(/Z$/) });
});

test.each<[string, (log: ReturnType<typeof createLogger>) => void]>([
  ['an API key in a message', (log) => log.info(`refused ${key}`)],
  ['an API key in a member', (log) => log.info({ deep: { list: [{ presented: key }] } })],
  ['an API key in an error and its stack', (log) => log.error({ err: new Error(`bad key ${key}`) })],
  ['an authorization header', (log) => log.info({ req: { headers: { authorization: `Bearer x"${key}` } } })],
])('%s is redacted', (_what, log) => {
  const line = linesOf(log);
  expect(line).not.toContain(key.slice(12));
  expect(line).toContain('[redacted]');
});

test.each<[string, (log: ReturnType<typeof createLogger>) => void]>([
  ['a ticket in a URL', (log) => log.info({ url: '/realtime?ticket=s3cret&resume=4' })],
  ['a ticket as second parameter', (log) => log.info('GET /realtime?resume=4&ticket=s3cret HTTP/1.1')],
  ['a ticket in an address', (log) => log.info(`/websocket?ticket=${ticket}`)],
  ['a ticket among subprotocols', (log) => log.info({ headers: { 'sec-websocket-protocol': `parley.v1, ${offer}` } })],
  ['a ticket as the only subprotocol', (log) => log.info({ protocols: [offer] })],
  ['a ticket of another make among subprotocols', (log) => log.info(`parley.v1,ticket.s3cret_${'x'.repeat(20)}`)],
  ['a ticket anywhere', (log) => log.info({ err: new Error(`no such ticket: ${ticket}`), value: ticket })],
  ['a ticket in a member', (log) => log.info({ ticket: 's3cret' })],
  ['a password with quotes in it', (log) => log.info({ redis: { password: 'a"s3cret\\"b' } })],
])('%s is redacted, and the line stays JSON', (_what, log) => {
  const line = linesOf(log);
  expect(line).not.toContain('s3cret');
  expect(JSON.parse(line)).toMatchObject({ level: 'info' });
});

test('what is no secret stays', () => {
  expect(linesOf((log) => log.info({ url: '/channels?page=2', ticketed: 'yes' }))).toContain('/channels?page=2');
});
