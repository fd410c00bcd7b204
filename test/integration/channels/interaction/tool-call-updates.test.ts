import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MAX_TOOL_CALLS, UPDATE_TTL_MS } from '#libs/features/channels/interaction/tool-call-updates.ts';
import { ephemeralKeys } from '#libs/platform/live/live.keys.ts';
import { READ_MODELS_PREFIX } from '#libs/platform/readmodel/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import { keysIn, nodeWith } from '#test/support/redis-commands.ts';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body && { body }) });
}

async function newChannel(): Promise<string> {
  return (await call('POST', '/api/v1/channels', { type: 'websocket', name: 'A channel' })).json.id;
}

const item = (toolCallId: string, sequence: number): object => ({
  type: 'tool_call_update',
  tool_name: 'search',
  tool_call_id: toolCallId,
  sequence,
  update: sequence % 2 === 0 ? { text: `${sequence} %` } : { items: [{ label: 'a', state: 'done' }] },
});
const post = (at: string, body: object): Promise<Answer> => call('POST', `/api/v1/channels/${at}/interactions`, body);
const update = (at: string, toolCallId: string, sequence: number, more: object = {}): Promise<Answer> =>
  post(at, { content_role: 'tool_call_update', content: [item(toolCallId, sequence)], ...more });
const list = async (at: string, query = ''): Promise<Answer['json']> =>
  (await call('GET', `/api/v1/channels/${at}/interactions?include_tool_call_updates=true&${query}`)).json;

const nestedOf = (one: Answer['json']): object => ({ ...one, nested_interactions: null });

describe('an update of a tool call', () => {
  it('is answered as an interaction, shown on request, and is neither in the log nor in a read model', async () => {
    const at = await newChannel();
    const before = await readLog(api.stores.eventStore.url, 'channel-');
    const answer = await update(at, 'call-1', 1);
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      channel_id: at,
      content: [item('call-1', 1)],
      content_role: 'tool_call_update',
      sequence: null,
    });
    expect(await list(at)).toMatchObject({ items: [answer.json], meta: { total: 0, has_next: false } });
    expect((await call('GET', `/api/v1/channels/${at}/interactions`)).json.items).toEqual([]);
    expect((await call('GET', `/api/v1/interactions/${answer.json.id}`)).status).toBe(404);
    expect(await readLog(api.stores.eventStore.url, 'channel-')).toEqual(before);
    const { redis } = api.stores.platform;
    const keys = (await keysIn(redis, '*tool-call-updates*')).filter((key) => key.includes(at));
    expect(keys).toHaveLength(2);
    for (const key of keys) {
      expect(key.startsWith(READ_MODELS_PREFIX)).toBe(false);
      expect(await nodeWith(redis, key).pttl(key)).toBeGreaterThan(0);
      expect(await nodeWith(redis, key).pttl(key)).toBeLessThanOrEqual(300_000);
    }
  });

  it('replaces an earlier update of the same tool call, but not a later one', async () => {
    const at = await newChannel();
    const newest = await update(at, 'call-1', 5);
    const other = await update(at, 'call-2', -3);
    for (const sequence of [4, 5, -1]) expect((await update(at, 'call-1', sequence)).json).toEqual(newest.json);
    expect((await list(at)).items).toEqual([newest.json, other.json]);
    const later = await update(at, 'call-1', 10);
    expect((await list(at)).items).toEqual([other.json, later.json]);
  });

  it('is the highest of concurrent ones, from two gateways', async () => {
    const at = await newChannel();
    const gateways = [api, await api.startInstance()] as const;
    await Promise.all(
      Array.from({ length: 40 }, (_, n) => {
        const body = { content_role: 'tool_call_update', content: [item('call', (n * 7) % 40)] };
        const url = `/api/v1/channels/${at}/interactions`;
        return gateways[n % 2]?.call({ method: 'POST', url, key: api.rootKey, body });
      }),
    );
    expect((await list(at)).items).toMatchObject([{ content: [item('call', 39)] }]);
    await gateways[1].stop();
  });

  it('is after the newest page, in both directions, where the filter matches', async () => {
    const at = await newChannel();
    for (let n = 0; n < 3; n++) await post(at, { content: [], interaction_id: 'turn' });
    const { json } = await update(at, 'call', 1, { interaction_id: 'turn' });
    const lengths = async (query: string): Promise<number> => (await list(at, query)).items.length;
    const newest = await list(at, 'size=2');
    expect(newest.items).toHaveLength(3);
    expect(newest.items[2]).toEqual(json);
    expect(await lengths(`size=2&cursor=${newest.meta.next_cursor}`)).toBe(1);
    const oldest = await list(at, 'size=2&order=asc');
    expect(oldest.items).toHaveLength(2);
    expect((await list(at, `size=2&order=asc&cursor=${oldest.meta.next_cursor}`)).items[1]).toEqual(json);
    expect((await list(at, 'content_role=tool_call_update')).items).toEqual([json]);
    expect(await lengths('interaction_id=turn')).toBe(4);
    expect(await lengths('interaction_id=another')).toBe(0);
    expect(await lengths('content_role=user_message')).toBe(3);
    expect(await lengths('before_sequence=100')).toBe(3);
  });

  it('is shown below its parent', async () => {
    const at = await newChannel();
    const root = (await post(at, { content: [], span_id: 'root' })).json;
    const child = (await post(at, { content: [], span_id: 'child', parent_span_id: 'root' })).json;
    await post(at, { content: [], span_id: 'elsewhere' });
    await update(at, 'not here', 1, { parent_span_id: 'elsewhere' });
    const { json } = await update(at, 'call', 1, { parent_span_id: 'child' });
    expect(json).toMatchObject({ interaction_id: 'root', parent_span_id: 'child' });
    const nested = `/api/v1/interactions/${root.id}?include_nested_interactions=true`;
    expect((await call('GET', nested)).json.nested_interactions).toEqual([child].map(nestedOf));
    const all = await call('GET', `${nested}&include_tool_call_updates=true`);
    expect(all.json.nested_interactions).toEqual([child, json].map(nestedOf));
  });

  it('is shown below the root of its turn, wherever in the turn it belongs, and not below other branches', async () => {
    const at = await newChannel();
    const asked = (await post(at, { content: [], interaction_id: 'turn' })).json;
    const parent_span_id = asked.span_id;
    const thinking = (await post(at, { content: [], complete: false, parent_span_id })).json;
    const other = (await post(at, { content: [], parent_span_id })).json;
    const another = (await post(at, { content: [], interaction_id: 'another' })).json;
    const below = (await update(at, 'below', 1, { parent_span_id: thinking.span_id })).json;
    const ofTurn = (await update(at, 'of the turn', 1, { interaction_id: 'turn' })).json;
    await update(at, 'of none', 1);
    const shownBelow = async ({ id }: { id: string }): Promise<unknown> => {
      const query = 'include_nested_interactions=true&include_tool_call_updates=true&include_incomplete=';
      const answers = await Promise.all(
        ['false', 'true'].map((incomplete) => call('GET', `/api/v1/interactions/${id}?${query}${incomplete}`)),
      );
      return answers.map(({ json }) => json.nested_interactions);
    };
    expect(await shownBelow(asked)).toEqual([
      [other, below, ofTurn].map(nestedOf),
      [thinking, other, below, ofTurn].map(nestedOf),
    ]);
    expect(await shownBelow(thinking)).toEqual([undefined, [below, ofTurn].map(nestedOf)]);
    expect(await shownBelow(other)).toEqual([[nestedOf(ofTurn)], [nestedOf(ofTurn)]]);
    expect(await shownBelow(another)).toEqual([[], []]);
  });

  it('expires by the clock of Redis, though others of the channel do not', async () => {
    const at = await newChannel();
    const { redis } = api.stores.platform;
    const { values: documents, expiry } = ephemeralKeys('tool-call-updates', api.organizationId, at);
    const old = (await update(at, 'old', 7)).json;
    const young = (await update(at, 'young', 1)).json;
    const now = Number((await nodeWith(redis, expiry).time())[0]) * 1_000;
    for (const key of [documents, expiry]) {
      expect(await nodeWith(redis, key).pttl(key)).toBeGreaterThan(UPDATE_TTL_MS - 60_000);
      expect(await nodeWith(redis, key).pttl(key)).toBeLessThanOrEqual(UPDATE_TTL_MS);
    }
    for (const until of (await nodeWith(redis, expiry).zrange(expiry, '0', '-1', 'WITHSCORES')).filter(
      (_, index) => index % 2 === 1,
    )) {
      expect(Number(until)).toBeGreaterThan(now + UPDATE_TTL_MS - 60_000);
      expect(Number(until)).toBeLessThanOrEqual(now + UPDATE_TTL_MS + 60_000);
    }
    expect((await list(at)).items).toEqual([old, young]);
    // As if it had been sent five minutes ago.
    await nodeWith(redis, expiry).zadd(expiry, now - 1, 'old');
    expect((await list(at)).items).toEqual([young]);
    const again = (await update(at, 'old', 1)).json;
    expect(again).toMatchObject({ content: [item('old', 1)] });
    expect((await list(at)).items).toEqual([young, again]);
    // The set of the channel's updates expires as a whole, and nothing is left of them.
    for (const key of [documents, expiry]) await nodeWith(redis, key).pexpire(key, 1);
    await eventually(async () => (await nodeWith(redis, expiry).exists(documents, expiry)) === 0);
    expect((await list(at)).items).toEqual([]);
  });

  it('of more tool calls than a channel may have replaces the one that would expire next', async () => {
    const at = await newChannel();
    const { redis } = api.stores.platform;
    const { values: documents, expiry } = ephemeralKeys('tool-call-updates', api.organizationId, at);
    const names = Array.from({ length: MAX_TOOL_CALLS }, (_, n) => `call-${String(n).padStart(3, '0')}`);
    for (const name of names) await update(at, name, 1);
    // The first one gets another five minutes, so that the second expires next.
    const until = Number((await nodeWith(redis, expiry).zrange(expiry, '-1', '-1', 'WITHSCORES'))[1]);
    await nodeWith(redis, expiry).zadd(expiry, until + 1, 'call-000');
    expect((await list(at)).items).toHaveLength(MAX_TOOL_CALLS);
    await update(at, 'one more', 1);
    const shown = (await list(at)).items.map(({ content }: Answer['json']) => content[0].tool_call_id);
    expect(shown.toSorted()).toEqual([...names.filter((name) => name !== 'call-001'), 'one more'].toSorted());
    expect([await nodeWith(redis, documents).hlen(documents), await nodeWith(redis, expiry).zcard(expiry)]).toEqual([
      MAX_TOOL_CALLS,
      MAX_TOOL_CALLS,
    ]);
  });

  it('is refused where it is not alone, and where nothing may be posted', async () => {
    const at = await newChannel();
    const text = { type: 'text', text: 'x' };
    const begun = (await post(at, { content: [], complete: false })).json;
    const refused = [
      await update(at, 'call', 1, { content: [text] }),
      await update(at, 'call', 1, { content: [] }),
      await update(at, 'call', 1, { content: [item('a', 1), item('b', 1)] }),
      await update(at, 'call', 1, { content_role: 'tool_call' }),
      await post(at, { content: [text, item('a', 1)] }),
      await update(at, 'call', 1, { parent_span_id: 'unknown' }),
      await call('POST', `/api/v1/interactions/${begun.id}/content`, { content: [item('a', 1)] }),
      await call('POST', `/api/v1/interactions/${begun.id}/complete`, { content: [item('a', 1)] }),
    ];
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 422));
    const missing = '0198c0de-0000-7000-8000-000000000000';
    expect((await update(missing, 'call', 1)).bytes).toBe((await post(missing, { content: [] })).bytes);
    await call('POST', `/api/v1/channels/${at}/archive`);
    const archived = await update(at, 'call', 1);
    expect([archived.status, archived.json.code]).toEqual([409, 'archived']);
    // Archiving has failed the incomplete interactions; no update is kept.
    expect((await list(at)).items.map(({ id }: Answer['json']) => id)).toEqual([begun.id]);
  });
});
