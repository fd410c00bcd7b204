/* Admission of websockets: one connection per ticket, within its lifetime, for its channel, from an allowed origin. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyProcess } from '#test/support/parley-process.ts';
import { exchangeBytes } from '#test/support/raw-socket.ts';
import {
  newChannel,
  startNodeProcess,
  startTwoNodes,
  type StartNode,
  type TwoNodes,
} from '#test/support/realtime/nodes.ts';
import { RawWebsocket, type End } from '#test/support/realtime/raw-websocket.ts';
import { websocketPath } from '#test/support/realtime/raw-session.ts';
import { newTicket } from '#test/support/realtime/subscriber.ts';
import { newTenant } from '#test/support/tenants.ts';

const ORIGIN = 'https://app.example.com';

let nodes: TwoNodes<ParleyProcess>;
let channelId: string;
/** All issued tickets: none may be in the log of the other node. */
const issued: string[] = [];

beforeAll(async () => {
  // The other node gets nearly all requests: the last test reads its log.
  const startOther: StartNode<ParleyProcess> = ({ env, ...options }) =>
    startNodeProcess({ ...options, env: { ...env, LOG_LEVEL: 'trace' } });
  nodes = await startTwoNodes(startOther, { CORS_ORIGINS: ORIGIN });
  channelId = await newChannel(nodes.other.api);
});
afterAll(() => nodes?.stop(), 40_000);

async function ticketFor(channel = channelId, api = nodes.other.api): Promise<string> {
  const ticket = await newTicket(api, channel);
  issued.push(ticket);
  return ticket;
}

interface Attempt {
  readonly node?: { readonly port: number };
  readonly channel?: string;
  readonly query?: boolean;
  readonly origin?: string;
}

/** Resolves when it has received the hello, or is closed. */
async function connect(
  ticket: string,
  { node = nodes.other, channel = channelId, query = false, origin }: Attempt = {},
): Promise<RawWebsocket> {
  const socket = await RawWebsocket.open(node.port, websocketPath(channel) + (query ? `?ticket=${ticket}` : ''), {
    'sec-websocket-protocol': query ? 'parley.v1' : `parley.v1, ticket.${ticket}`,
    ...(origin !== undefined && { origin }),
  });
  await socket.until(({ ended, frames }) => ended || frames.length > 0);
  return socket;
}

const wasGreeted = ({ texts }: RawWebsocket): boolean => texts[0]?.startsWith('{"frame":"hello"') === true;

/** The outcome of an attempt. */
interface Outcome {
  readonly end: End | 'open';
  readonly frames: readonly string[];
  /** The subprotocol of the answer: never the ticket. */
  readonly protocol: string | undefined;
  readonly saysTicket: boolean;
}

/** Closed before any frame. */
const REFUSED: Outcome = { end: 1008, frames: [], protocol: 'parley.v1', saysTicket: false };
const GREETED: Outcome = { end: 'open', frames: ['hello'], protocol: 'parley.v1', saysTicket: false };

async function outcome(ticket: string, attempt?: Attempt): Promise<Outcome> {
  const socket = await connect(ticket, attempt);
  try {
    return {
      end: socket.texts.length > 0 ? 'open' : await socket.closed(),
      frames: socket.texts.map((text) => String(asRecord(JSON.parse(text))['frame'])),
      protocol: /^sec-websocket-protocol: (.*)\r$/im.exec(socket.answer)?.[1],
      saysTicket: /ticket/i.test(socket.answer),
    };
  } finally {
    socket.destroy();
  }
}

describe('a ticket', () => {
  it('admits one of fifty concurrent connections, at two nodes', async () => {
    const ticket = await ticketFor();
    const sockets = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        connect(ticket, { node: n % 2 === 0 ? nodes.other : nodes.one, query: n % 3 === 0 }),
      ),
    );
    const [greeted, refused] = [sockets.filter(wasGreeted), sockets.filter((socket) => !wasGreeted(socket))];
    expect(greeted).toHaveLength(1);
    expect(refused).toHaveLength(49);
    expect(await Promise.all(refused.map((socket) => socket.closed()))).toEqual(refused.map(() => 1008));
    expect(refused.flatMap(({ texts }) => texts)).toEqual([]);
    for (const socket of greeted) socket.destroy();
  });

  it('is accepted as a subprotocol or in the query, at the other node, too', async () => {
    for (const node of [nodes.one, nodes.other]) {
      expect(await outcome(await ticketFor(), { node })).toEqual(GREETED);
      expect(await outcome(await ticketFor(), { node, query: true })).toEqual(GREETED);
    }
  });

  it('is refused once it was used', async () => {
    const ticket = await ticketFor();
    expect(await outcome(ticket)).toEqual(GREETED);
    expect(await outcome(ticket)).toEqual(REFUSED);
    expect(await outcome(ticket, { query: true, node: nodes.one })).toEqual(REFUSED);
  });

  it('is refused once it has expired by the clock of Redis', async () => {
    const ticket = await ticketFor();
    const keys = await ticketKeys();
    expect(keys).toHaveLength(1);
    const [key = ''] = keys;
    const left = Number(await nodes.redis.command('PTTL', key));
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60_000);
    await nodes.redis.command('PEXPIRE', key, '1');
    await eventually(async () => (await nodes.redis.command('EXISTS', key)) === 0);
    expect(await outcome(ticket)).toEqual(REFUSED);
  });

  it('is stored hashed', async () => {
    const ticket = await ticketFor();
    const [key = ''] = await ticketKeys();
    expect(key).not.toContain(ticket);
    expect(String(await nodes.redis.command('GET', key))).not.toContain(ticket);
    expect(await outcome(ticket)).toEqual(GREETED);
    expect(await ticketKeys()).toEqual([]);
  });

  it('is refused for another channel, for another organization, and if it is unknown', async () => {
    const { api } = await newTenant(nodes.other.api);
    const [another, foreign] = [await newChannel(nodes.other.api), await newChannel(api)];
    expect(await outcome(await ticketFor(another))).toEqual(REFUSED);
    expect(await outcome(await ticketFor(foreign, api))).toEqual(REFUSED);
    expect(await outcome(await ticketFor(), { channel: foreign })).toEqual(REFUSED);
    expect(await outcome('x'.repeat(43))).toEqual(REFUSED);
    expect(await outcome('', { query: true })).toEqual(REFUSED);
  });

  it('is not issued for a channel of another organization', async () => {
    const { api } = await newTenant(nodes.other.api);
    expect((await api.post(`/api/v1/channels/${channelId}/websocket_ticket`)).status).toBe(404);
  });

  it('is refused from a foreign origin, which does not use it up', async () => {
    const ticket = await ticketFor();
    for (const origin of [
      'https://evil.example.com',
      `${ORIGIN}.evil.example`,
      'null',
      ORIGIN.replace('https', 'http'),
    ]) {
      expect(await outcome(ticket, { origin })).toEqual(REFUSED);
    }
    expect(await outcome(ticket, { origin: ORIGIN })).toEqual(GREETED);
  });

  it("is accepted from the server's own address, which React Native sends, and for its channel in any letter case", async () => {
    const { port } = nodes.other;
    const own = { origin: `http://127.0.0.1:${port}` };
    expect(await outcome(await ticketFor(), { origin: `http://127.0.0.1:${port + 1}` })).toEqual(REFUSED);
    expect(await outcome(await ticketFor(), own)).toEqual(GREETED);
    for (const channel of [channelId.toUpperCase(), channelId.replaceAll('-', '')]) {
      expect(await outcome(await ticketFor(), { ...own, channel })).toEqual(GREETED);
    }
  });

  it('is in no log, wherever it was sent', async () => {
    // Requests that log a URL or a fault, and are no upgrade of an existing websocket.
    const [stray, other, elsewhere] = [await ticketFor(), await ticketFor(), await ticketFor()];
    const path = `${websocketPath(channelId)}?ticket=${stray}`;
    await nodes.other.api.get(path);
    await nodes.other.api.get(`/nowhere/${elsewhere}`);
    await nodes.other.api.post(`/api/v1/channels/${channelId}/interactions`, `{"ticket":"${elsewhere}`);
    (await RawWebsocket.open(nodes.other.port, path, { 'sec-websocket-protocol': `ticket.${stray}` })).destroy();
    await exchangeBytes(nodes.other.port, [
      `GET ${path} HTTP/1.1\r\nhost: x\r\nupgrade: nonsense\r\nconnection: upgrade, close\r\n\r\n`,
    ]);
    await exchangeBytes(nodes.other.port, [
      `POST ${path} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    ]);
    const lost = await RawWebsocket.open(nodes.other.port, `/api/v1/nowhere?ticket=${other}`);
    expect(lost.upgraded).toBe(false);
    lost.destroy();
    // Writes out the lines that are logged after an answer.
    await nodes.other.stop();
    const output = nodes.other.output();
    for (const route of ['/api/v1/channels', '/api/v1/channels/:id/interactions']) expect(output).toContain(route);
    expect(issued.length).toBeGreaterThan(10);
    expect(issued.filter((ticket) => output.includes(ticket))).toEqual([]);
  });
});

async function ticketKeys(): Promise<string[]> {
  // Tickets of other tests are used up, except those that were refused for another channel.
  const found = await nodes.redis.command('KEYS', 'parley:ticket:*');
  return Array.isArray(found) ? found.map(String) : [];
}
