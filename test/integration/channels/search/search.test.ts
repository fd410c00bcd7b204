/* Search over messages: what is found, by whom, and what never is. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { CHANNEL_READ_MODEL } from '#libs/features/channels/index.ts';
import { userIdOf } from '#libs/features/users/index.ts';
import { buildGateway } from '#services/gateway/role.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { listKeys } from '#libs/platform/readmodel/read-model.keys.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import { nodeWith } from '#test/support/redis-commands.ts';
import { roleContext } from '#test/support/role-context.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let shop: Signer;
let [ada, bob, eve] = ['', '', ''];

beforeAll(async () => {
  api = await startTestApi();
  shop = await Signer.create('EdDSA', 'https://shop.example.org', 'one');
  await register(api, shop);
  [ada, bob, eve] = [await shop.token('ada'), await shop.token('bob'), await shop.token('eve')];
  for (const key of [ada, bob, eve]) await send(key, 'GET', 'channels');
});
afterAll(() => api?.stop());

const send = (key: string, method: Call['method'], path: string, body?: object): Promise<Answer> =>
  api.call({ method, url: `/api/v1/${path}`, key, ...(body && { body }) });
const said = (text: string) => ({ content: [{ type: 'text', text }] });
const userId = (subject: string) => userIdOf({ organizationId: api.organizationId, issuer: shop.issuer, subject });

async function newChannel(...subjects: string[]): Promise<string> {
  const participants = subjects.map((one) => ({ type: 'authenticated_user', user_id: userId(one) }));
  return (await send(api.rootKey, 'POST', 'channels', { name: 'Lab', participants })).json.id;
}

async function posted(channel: string, text: string, more: object = {}, key = api.rootKey): Promise<Answer['json']> {
  const answer = await send(key, 'POST', `channels/${channel}/interactions`, { ...said(text), ...more });
  expect(answer.status).toBe(200);
  return answer.json;
}

async function search(key: string, q: string, more: Record<string, string> = {}): Promise<Answer> {
  return send(key, 'GET', `interactions/search?${new URLSearchParams({ q, ...more }).toString()}`);
}

/** Texts that are found. */
async function texts(key: string, q: string, more: Record<string, string> = {}): Promise<string[]> {
  const { status, json } = await search(key, q, more);
  expect(status).toBe(200);
  return json.items.map((one: Answer['json']) => one.interaction.content[0].text);
}

/** What a call shows on another machine, which builds its own index. */
async function elsewhere<T>(run: (call: TestApi['call']) => Promise<T>, file?: string): Promise<T> {
  const cacheDir = await mkdtemp(join(tmpdir(), 'parley-search-'));
  if (file !== undefined) {
    await mkdir(join(cacheDir, 'messages'));
    await writeFile(join(cacheDir, 'messages', `${api.organizationId}.sqlite`), file);
  }
  const context = roleContext({ ...api.stores.platform, cacheDir }, api.stores.config);
  const config = parseConfig({ RATE_LIMIT_PER_ADDRESS: '0', RATE_LIMIT_PER_KEY: '0' });
  const { server, stop } = await buildGateway(context, config);
  try {
    return await run(async ({ method, url, key }) => {
      const answer = await server.app.inject({ method, url, headers: { authorization: key } });
      const { statusCode: status, payload: bytes, headers } = answer;
      return { status, bytes, headers, json: JSON.parse(bytes) };
    });
  } finally {
    await stop();
    await rm(cacheDir, { recursive: true, force: true });
  }
}

describe('search over messages', () => {
  it('finds messages with all words, with excerpts that are plain text', async () => {
    const channel = await newChannel('ada');
    const first = await posted(channel, 'The <b>Zeppelin</b> lands at noon & stays', {}, ada);
    await posted(channel, 'Zeppelins are slow');
    await posted(channel, 'noon it is');
    const { json } = await search(ada, 'zeppelin noon');
    expect(json).toEqual({
      items: [
        {
          interaction: first,
          score: expect.any(Number),
          highlights: [
            {
              content_index: 0,
              member: 'text',
              offset: 0,
              parts: [
                { text: 'The <b>', is_match: false },
                { text: 'Zeppelin', is_match: true },
                { text: '</b> lands at ', is_match: false },
                { text: 'noon', is_match: true },
                { text: ' & stays', is_match: false },
              ],
            },
          ],
        },
      ],
      meta: { total: 1, has_next: false, has_previous: false, page: 1, next_cursor: null },
    });
    // Inflections, beginnings of words, and misspellings of words that no message has.
    expect(await texts(ada, 'zeppelin')).toHaveLength(2);
    expect(await texts(ada, 'zepp slow')).toEqual(['Zeppelins are slow']);
    expect(await texts(ada, 'zepelin noon')).toHaveLength(1);
    expect(await texts(ada, 'zeppelin xylophone')).toEqual([]);
    expect(await texts(ada, '?!')).toEqual([]);
    expect((await search(ada, 'zeppelin', { sort: 'newest' })).json.items).toMatchObject([
      { interaction: { content: [{ text: 'Zeppelins are slow' }] }, score: null },
      { interaction: { id: first.id }, score: null },
    ]);
  });

  it('finds messages of users and agents only, and incomplete ones when they are complete', async () => {
    const channel = await newChannel('ada');
    for (const content_role of ['internal_error', 'channel_notification', 'agent_reasoning', 'tool_call_result']) {
      await posted(channel, 'a gondola', { content_role, participant: { type: 'system' } });
    }
    const draft = await posted(channel, 'the first gondola', { complete: false, content_role: 'agent_response' });
    expect(await texts(ada, 'gondola')).toEqual([]);
    await send(api.rootKey, 'POST', `interactions/${draft.id}/content`, said('drifts'));
    expect(await texts(ada, 'gondola drifts')).toEqual([]);
    await send(api.rootKey, 'POST', `interactions/${draft.id}/complete`, {});
    expect(await texts(ada, 'gondola drifts')).toEqual(['the first gondola']);
    const replaced = await posted(channel, 'old regatta', { complete: false });
    await send(api.rootKey, 'POST', `interactions/${replaced.id}/complete`, said('new regatta'));
    expect(await texts(ada, 'old regatta')).toEqual([]);
    expect(await texts(ada, 'new regatta')).toEqual(['new regatta']);
    const failed = await posted(channel, 'half a barcarole', { complete: false });
    await send(api.rootKey, 'POST', `interactions/${failed.id}/fail`, { reason: 'x' });
    expect(await texts(ada, 'barcarole')).toEqual(['half a barcarole']);
  });

  it('finds edited messages by their new text only, and deleted ones never', async () => {
    const channel = await newChannel('ada');
    const message = await posted(channel, 'a porcupine sleeps', {}, ada);
    const other = await posted(channel, 'another porcupine', {}, ada);
    expect(await texts(ada, 'porcupine')).toHaveLength(2);
    await send(ada, 'PATCH', `interactions/${message.id}`, said('a marmot sleeps'));
    expect(await texts(ada, 'porcupine sleeps')).toEqual([]);
    expect(await texts(ada, 'sleeps')).toEqual(['a marmot sleeps']);
    await send(ada, 'DELETE', `interactions/${message.id}`);
    await send(ada, 'DELETE', `interactions/${other.id}`);
    for (const q of ['porcupine', 'marmot', 'sleeps', 'porcupin', 'marmott']) {
      const { json, bytes } = await search(ada, q);
      expect(json).toMatchObject({ items: [], meta: { total: 0 } });
      expect(bytes).not.toMatch(/porcupine|marmot/);
    }
    // An index that is built after it, and one that another process brings up to date.
    await elsewhere(async (call) => {
      for (const q of ['porcupine', 'marmot', 'sleeps']) {
        const answer = await call({ method: 'GET', url: `/api/v1/interactions/search?q=${q}`, key: ada });
        expect(answer).toMatchObject({ status: 200, json: { items: [] } });
      }
    });
    const instance = await api.startInstance();
    try {
      const again = await posted(channel, 'a hedgehog', {}, ada);
      await send(ada, 'DELETE', `interactions/${again.id}`);
      const url = '/api/v1/interactions/search?q=hedgehog';
      expect((await instance.call({ method: 'GET', url, key: ada })).json.items).toEqual([]);
    } finally {
      await instance.stop();
    }
  });

  it('shows members their channels only, also after they were removed', async () => {
    const [shared, secret] = [await newChannel('ada', 'eve'), await newChannel('ada')];
    await posted(shared, 'a walrus in the hall');
    await posted(secret, 'the walrus in the safe');
    expect(await texts(ada, 'walrus')).toHaveLength(2);
    expect(await texts(api.rootKey, 'walrus')).toHaveLength(2);
    const found = await search(eve, 'walrus');
    expect(found.json).toMatchObject({ items: [{ interaction: { channel_id: shared } }], meta: { total: 1 } });
    expect(found.bytes).not.toContain('safe');
    const nowhere = await send(eve, 'GET', `interactions/search?q=walrus&channel_id=${crypto.randomUUID()}`);
    const foreign = await send(eve, 'GET', `interactions/search?q=walrus&channel_id=${secret}`);
    const plain = ({ status, bytes }: Answer) => [status, bytes.replace(/,"request_id":"[^"]*"/, '')];
    expect(plain(foreign)).toEqual(plain(nowhere));
    expect(foreign.status).toBe(404);
    const { json } = await send(api.rootKey, 'GET', `channels/${shared}/participants`);
    const record = json.items[1].participant_id;
    await send(api.rootKey, 'DELETE', `channels/${shared}/participants/${record}`);
    expect((await search(eve, 'walrus')).json).toMatchObject({ items: [], meta: { total: 0 } });
    expect((await search(eve, 'walrus', { channel_id: shared })).status).toBe(404);
  });

  it('refuses what the log refuses while the read model still names a former participant', async () => {
    const channel = await newChannel('bob');
    await posted(channel, 'an ocelot');
    expect(await texts(bob, 'ocelot')).toHaveLength(1);
    // As a read model that lags behind: its list still has the channel.
    const { platform } = api.stores;
    const { indexPrefix } = listKeys(CHANNEL_READ_MODEL, api.organizationId);
    const key = `${indexPrefix}open:participant=${userId('bob')}`;
    const node = nodeWith(platform.redis, key);
    const members = await node.zrange(key, '0', '-1');
    const { json } = await send(api.rootKey, 'GET', `channels/${channel}/participants`);
    await send(api.rootKey, 'DELETE', `channels/${channel}/participants/${json.items[0].participant_id}`);
    for (const member of members) await node.zadd(key, 0, member);
    expect((await search(bob, 'ocelot')).json).toMatchObject({ items: [], meta: { total: 0 } });
    expect((await search(bob, 'oscelot')).json).toMatchObject({ items: [], meta: { total: 0 } });
  });

  it('answers as if there were no other channels: which words are corrected, and which longer words count', async () => {
    const [own, others] = [await newChannel('eve'), await newChannel('ada')];
    await posted(own, 'the quagmires');
    await posted(own, 'manticorealabasterly');
    expect(await texts(eve, 'quagmxres')).toEqual(['the quagmires']);
    // A word that another channel has is still a misspelling here.
    await posted(others, 'the quagmxres');
    expect(await texts(eve, 'quagmxres')).toEqual(['the quagmires']);
    // More words than the index tries do not hide one's own.
    await posted(others, Array.from({ length: 40 }, (_, n) => `manticorea${n}`).join(' '));
    expect(await texts(eve, 'manticorea')).toEqual(['manticorealabasterly']);
    const score = async () => (await search(eve, 'quagmires')).json.items[0].score;
    const before = await score();
    for (let n = 0; n < 5; n++) await posted(others, `quagmires ${n}`);
    expect(await score()).toBe(before);
  });

  it('of another organization finds nothing, and its key neither', async () => {
    const channel = await newChannel('ada');
    await posted(channel, 'a salamander');
    const organization = (await send(api.rootKey, 'POST', 'organizations', { name: 'Other' })).json;
    const made = await send(api.rootKey, 'POST', 'keys', {
      name: 'k',
      organization_id: organization.id,
      principal: { type: 'service', id: 's' },
      scopes: ['read', 'write'],
    });
    expect(made.status).toBe(200);
    expect((await search(made.json.key, 'salamander')).json).toMatchObject({ items: [], meta: { total: 0 } });
    expect((await search(made.json.key, 'salamander', { channel_id: channel })).status).toBe(404);
  });

  it.each(['relevance', 'newest'])('pages by %s, and stays where it was while messages come', async (sort) => {
    const channel = await newChannel('ada');
    for (let n = 1; n <= 12; n++) await posted(channel, `${'caravan '.repeat((n % 4) + 1)} number${n}`, {}, ada);
    const all = await texts(ada, 'caravan', { sort, channel_id: channel });
    expect(all).toHaveLength(12);
    const url = `/api/v1/interactions/search?q=caravan&sort=${sort}&size=5&channel_id=${channel}`;
    const seen: string[] = [];
    let cursor: string | null = '';
    for (let page = 1; cursor !== null; page++) {
      const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const read = (call: TestApi['call']): Promise<Answer> => call({ method: 'GET', url: url + more, key: ada });
      // A page of another machine, whose index has its rows in another order.
      const { json }: Answer = await (page === 2 ? elsewhere(read) : read(api.call));
      seen.push(...json.items.map((one: Answer['json']) => one.interaction.content[0].text));
      cursor = json.meta.next_cursor;
      await posted(channel, `caravan caravan caravan later${page}`, {}, ada);
    }
    expect(seen).toEqual(all);
    const forged = await send(bob, 'GET', `interactions/search?q=caravan&cursor=${encodeURIComponent('x')}`);
    expect(forged.status).toBe(422);
  });

  it('builds a damaged index again', async () => {
    const channel = await newChannel('ada');
    await posted(channel, 'a tapir');
    const url = '/api/v1/interactions/search?q=tapir';
    const found = await elsewhere((call) => call({ method: 'GET', url, key: ada }), 'no database'.repeat(1_000));
    expect(found).toMatchObject({ status: 200, json: { meta: { total: 1 } } });
  });

  it('is bounded by times, and finds archived channels', async () => {
    const channel = await newChannel('ada');
    const first = await posted(channel, 'an armadillo');
    await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(first.created_at) + 1);
    const second = await posted(channel, 'that armadillo');
    expect(await texts(ada, 'armadillo', { created_after: first.created_at })).toEqual(['that armadillo']);
    expect(await texts(ada, 'armadillo', { created_before: second.created_at })).toEqual(['an armadillo']);
    await send(api.rootKey, 'POST', `channels/${channel}/archive`);
    expect(await texts(ada, 'armadillo')).toHaveLength(2);
  });

  it('finds Chinese, Japanese and Thai within sentences, single characters and emoji', async () => {
    const channel = await newChannel('ada');
    for (const text of [
      '还有可能是定期检修',
      '我家在上海东边。',
      '東京タワーへ行く',
      'สวัสดีครับ',
      'well done 👍🏽',
      'Grüße aus Köln',
    ]) {
      await posted(channel, text);
    }
    expect(await texts(ada, '可能')).toEqual(['还有可能是定期检修']);
    expect(await texts(ada, '上海')).toEqual(['我家在上海东边。']);
    expect(await texts(ada, '检')).toEqual(['还有可能是定期检修']);
    expect(await texts(ada, '海上')).toEqual([]);
    expect(await texts(ada, 'タワー')).toEqual(['東京タワーへ行く']);
    expect(await texts(ada, 'สวัสดี')).toEqual(['สวัสดีครับ']);
    expect(await texts(ada, '👍')).toEqual(['well done 👍🏽']);
    expect(await texts(ada, 'koln')).toEqual(['Grüße aus Köln']);
  });

  it('finds long messages by their beginning, and compounds in any spelling', async () => {
    const channel = await newChannel('ada');
    await posted(channel, `wombat ${'and so on '.repeat(4_000)} kookaburra`);
    expect(await texts(ada, 'wombat')).toHaveLength(1);
    expect(await texts(ada, 'kookaburra')).toEqual([]);
    for (const text of ['the Blue-Tooth is on', 'the bluetooth is off']) await posted(channel, text);
    for (const q of ['bluetooth', 'blue-tooth', 'Blue-Tooth']) expect(await texts(ada, q)).toHaveLength(2);
  });

  it.each(['', 'q=', `q=${'x'.repeat(1_001)}`, 'q=a&sort=best', 'q=a&page=1000&size=100', 'q=a&channel_id=%00'])(
    'refuses %j',
    async (query) => {
      expect((await send(api.rootKey, 'GET', `interactions/search?${query.slice(0, 2_000)}`)).status).toBeGreaterThan(
        400,
      );
      expect((await send(api.rootKey, 'GET', `interactions/search?${query}`)).status).toBeLessThan(500);
    },
  );
});
