/** Members over websockets and event streams: who gets in, what they may send, and when their access ends. */
import { once } from 'node:events';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import { WebsocketAdmission } from '#libs/features/realtime/index.ts';
import { userIdOf } from '#libs/features/users/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import { type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let url: string;
let shop: Signer;
let issuerId: string;
let release: () => void;
const tokens = { ada: '', bob: '', eve: '' };

beforeAll(async () => {
  api = await startTestApi();
  const { node, tickets, grantOfMember } = api.features.realtime;
  release = api.stores.platform.upgrades.handle(
    new WebsocketAdmission(node(), { tickets, grantOfMember, origins: [], isOwnOrigin: () => false }),
  );
  url = await api.listen();
  shop = await Signer.create('EdDSA', 'https://shop.example.org', 'one');
  issuerId = await register(api, shop);
  for (const name of ['ada', 'bob', 'eve'] as const) {
    tokens[name] = await shop.token(name);
    await call(tokens[name], 'GET', 'channels');
  }
});

afterAll(async () => {
  await api.features.realtime.node().stop();
  release();
  await api.stop();
});

const userId = (subject: string) => userIdOf({ organizationId: api.organizationId, issuer: shop.issuer, subject });
const call = (key: string, method: Call['method'], path: string, body?: object) =>
  api.call({ method, url: `/api/v1/${path}`, key, ...(body && { body }) });

async function channelOf(...subjects: string[]) {
  const participants = subjects.map((one) => ({ type: 'authenticated_user', user_id: userId(one) }));
  const { json } = await call(api.rootKey, 'POST', 'channels', { name: 'secret plans', participants });
  const records: string[] = json.participants.map((one: { id: string }) => one.id);
  return { id: String(json.id), records };
}

/** A socket: what it received, and the code that it was closed with. */
class Client {
  readonly frames: { frame: string; id?: string; code?: string; type?: string }[] = [];
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;

  constructor(channel: string, secret: string) {
    this.#socket = new WebSocket(`${url}/api/v1/channels/${channel}/websocket`, ['parley.v1', secret]);
    this.#socket.on('message', (data: Buffer) => this.frames.push(JSON.parse(data.toString())));
    this.#socket.on('error', () => undefined);
    this.closed = once(this.#socket, 'close').then(([code]) => Number(code));
  }

  async hello(): Promise<this> {
    await expect.poll(() => this.frames.some(({ frame }) => frame === 'hello'), { timeout: 10_000 }).toBe(true);
    return this;
  }

  /** The answer to a command. */
  async command(type: string, data: object) {
    const id = newId();
    this.#socket.send(JSON.stringify({ frame: 'command', id, type, data }));
    await expect.poll(() => this.frames.some((one) => one.id === id), { timeout: 10_000 }).toBe(true);
    return this.frames.find((one) => one.id === id);
  }

  send(frame: object): void {
    this.#socket.send(JSON.stringify(frame));
  }

  end(): void {
    this.#socket.terminate();
  }
}

const ticketOf = async (token: string, channel: string, body?: object) =>
  `ticket.${(await call(token, 'POST', `channels/${channel}/websocket_ticket`, body)).json.value}`;
const text = { content: [{ type: 'text', text: 'hello' }] };

describe('a socket of a member', () => {
  it('opens with a ticket, or with the token itself, for channels in which it takes part', async () => {
    const { id } = await channelOf('ada');
    for (const secret of [await ticketOf(tokens.ada, id), `token.${tokens.ada}`]) {
      const client = await new Client(id, secret).hello();
      expect(await client.command('interaction.post', text)).toMatchObject({ frame: 'ack' });
      client.end();
    }
  });

  it('does not open for others, whose channel is answered as one that does not exist', async () => {
    const { id } = await channelOf('ada');
    const forged = await shop.forgeries('ada');
    const secrets = [tokens.eve, ...Object.values(forged).filter((token) => /^[\w.-]+$/.test(token))];
    const reader = await shop.token('ada', { parley_scopes: ['write'] });
    for (const token of [...secrets, reader, api.rootKey]) {
      const [foreign, missing] = [new Client(id, `token.${token}`), new Client(newId(), `token.${token}`)];
      expect([await foreign.closed, await missing.closed]).toEqual([1008, 1008]);
      expect([...foreign.frames, ...missing.frames]).toEqual([]);
    }
  });

  it('sends no command that REST would refuse, and none about another channel', async () => {
    const { id } = await channelOf('ada');
    const other = await channelOf('eve');
    const posted = await call(tokens.eve, 'POST', `channels/${other.id}/interactions`, text);
    const client = await new Client(id, `token.${tokens.ada}`).hello();
    for (const [type, data, code] of [
      ['interaction.post', { ...text, content_role: 'agent_response' }, 'not_for_members'],
      [
        'interaction.post',
        { content: [{ type: 'tool_call_result', tool_name: 't', tool_result: {} }] },
        'not_for_members',
      ],
      [
        'interaction.post',
        { ...text, participant: { type: 'authenticated_user', user_id: userId('eve') } },
        'missing_scope',
      ],
      ['reaction.add', { interaction_id: posted.json.id, emoji: '👍' }, 'not_found'],
      ['run.cancel', { run_id: newId() }, 'not_found'],
      ['typing', { agent_id: 'clerk' }, 'missing_scope'],
    ] as const) {
      expect({ type, answer: await client.command(type, data) }).toMatchObject({
        type,
        answer: { frame: 'error', code },
      });
    }
    client.end();
  });

  it('with a narrowed ticket or token only receives', async () => {
    const { id } = await channelOf('ada');
    const narrow = await shop.token('ada', { parley_scopes: ['read'] });
    const secrets = [
      await ticketOf(tokens.ada, id, { scopes: ['read'] }),
      await ticketOf(narrow, id),
      `token.${narrow}`,
    ];
    // A ticket never has more than its caller.
    secrets.push(await ticketOf(narrow, id, { scopes: ['read', 'write'] }));
    for (const secret of secrets) {
      const client = await new Client(id, secret).hello();
      for (const type of ['interaction.post', 'typing']) {
        expect(await client.command(type, type === 'typing' ? {} : text)).toMatchObject({ frame: 'error' });
      }
      client.end();
    }
  });

  it('is closed when its user is removed, and gets nothing of what follows', async () => {
    const { id, records } = await channelOf('ada', 'bob');
    const client = await new Client(id, `token.${tokens.bob}`).hello();
    client.send({ frame: 'resume' });
    await expect.poll(() => client.frames.some(({ frame }) => frame === 'caught_up'), { timeout: 10_000 }).toBe(true);
    await call(tokens.ada, 'GET', `channels/${id}`);
    expect(await call(api.rootKey, 'DELETE', `channels/${id}/participants/${records[1]}`)).toMatchObject({
      status: 200,
    });
    expect(await client.closed).toBe(4503);
    await call(api.rootKey, 'POST', `channels/${id}/interactions`, text);
    expect(client.frames.filter(({ type }) => type === 'interaction.posted')).toEqual([]);
    expect(await new Client(id, `token.${tokens.bob}`).closed).toBe(1008);
  });

  it('does not open with a ticket from before the removal', async () => {
    const { id, records } = await channelOf('ada', 'bob');
    const ticket = await ticketOf(tokens.bob, id);
    await call(api.rootKey, 'DELETE', `channels/${id}/participants/${records[1]}`);
    expect(await new Client(id, ticket).closed).toBe(1008);
  });

  it('is closed when its token expires, and when its issuer withdraws the key', async () => {
    const { id } = await channelOf('ada');
    const now = Math.floor(Date.now() / 1_000);
    const ending = await new Client(id, `token.${await shop.token('ada', { iat: now - 600, exp: now - 56 })}`).hello();
    expect(await ending.closed).toBe(4503);
    const client = await new Client(id, `token.${tokens.ada}`).hello();
    const other = await Signer.create();
    await call(api.rootKey, 'PATCH', `token-issuers/${issuerId}`, { keys: [other.jwk] });
    expect(await client.closed).toBe(4503);
    await call(api.rootKey, 'PATCH', `token-issuers/${issuerId}`, { keys: [shop.jwk] });
  });
});

describe('an event stream of a member', () => {
  it('ends when its user is removed', async () => {
    const { id, records } = await channelOf('ada', 'bob');
    const answer = await fetch(`${url}/api/v1/channels/${id}/events?after=0`, {
      headers: { authorization: `Bearer ${tokens.bob}`, accept: 'text/event-stream' },
    });
    expect(answer.status).toBe(200);
    const whole = answer.text();
    await call(api.rootKey, 'DELETE', `channels/${id}/participants/${records[1]}`);
    expect(await whole).not.toContain('interaction.posted');
  });
});
