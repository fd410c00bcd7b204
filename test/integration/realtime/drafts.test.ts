import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { type Drafts, interactionId } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import { FRAME_FLAG } from '#libs/platform/live/index.ts';
import { composeFeatures } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { subscribeToTopic } from '#test/support/realtime/live-topic.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { keysIn, nodeWith } from '#test/support/redis-commands.ts';

const INCOMPLETE = FRAME_FLAG.incomplete;
const NESTED = FRAME_FLAG.incomplete | FRAME_FLAG.nested;

let api: TestApi<TestRedis>;
let drafts: Drafts;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  ({ drafts } = composeFeatures(api.stores.platform).channels);
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object, key = api.rootKey): Promise<Answer> {
  return api.call({ method, url, key, ...(body && { body }) });
}
const newChannel = async (): Promise<string> => (await call('POST', '/api/v1/channels', { name: 'A' })).json.id;
const begin = async (channelId: string, more: object = {}): Promise<string> => {
  const body = { content: [], complete: false, ...more };
  return (await call('POST', `/api/v1/channels/${channelId}/interactions`, body)).json.id;
};
const write = (id: string, text: unknown, offset?: unknown): Promise<Answer> =>
  call('POST', `/api/v1/interactions/${id}/deltas`, { text, ...(offset !== undefined && { offset }) });
const end = (id: string, how: 'complete' | 'fail'): Promise<Answer> =>
  call('POST', `/api/v1/interactions/${id}/${how}`, {});
const current = (channelId: string): ReturnType<Drafts['current']> => drafts.current(api.organizationId, channelId);
const listen = (channelId: string) => subscribeToTopic(api.stores.platform, api.organizationId, channelId);

describe('the text of an interaction while it is written', () => {
  it('grows by deltas, each of which is published, and can be read as a whole', async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    const topic = await listen(channelId);
    const answers = [
      await write(id, 'Hé', 0),
      await write(id, ' 🎈', 2),
      await write(id, '', 5),
      await write(id, '!', 5),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers.map(({ json }) => json)).toEqual([2, 5, 5, 6].map((length) => ({ interaction_id: id, length })));
    const delta = (offset: number, text: string): object => ({
      flags: INCOMPLETE,
      key: `draft:${id}`,
      frame: { frame: 'delta', interaction_id: id, offset, text },
    });
    expect(await topic.take()).toEqual([delta(0, 'Hé'), delta(2, ' 🎈'), delta(5, ''), delta(5, '!')]);
    const json = JSON.stringify({ frame: 'snapshot', interaction_id: id, text: 'Hé 🎈!' });
    expect(await current(channelId)).toEqual([{ flags: INCOMPLETE, key: `draft:${id}`, json }]);
    topic.stop();
  });

  it('is replaced and published if there is no offset', async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    await write(id, 'first');
    const topic = await listen(channelId);
    expect((await write(id, 'second\nline')).json).toEqual({ interaction_id: id, length: 11 });
    expect((await write(id, '.', 11)).status).toBe(200);
    expect((await topic.take()).map(({ frame }) => frame)).toEqual([
      { frame: 'snapshot', interaction_id: id, text: 'second\nline' },
      { frame: 'delta', interaction_id: id, offset: 11, text: '.' },
    ]);
    topic.stop();
  });

  it('grows at its end only: another offset is refused with the stored length, and not published', async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    await write(id, 'abc', 0);
    const topic = await listen(channelId);
    for (const offset of [0, 2, 4, 1e9]) {
      const answer = await write(id, 'x', offset);
      expect(answer.status).toBe(409);
      expect(answer.json).toEqual({
        detail: 'The text has 3 UTF-16 code units so far',
        code: 'wrong_offset',
        length: 3,
        request_id: answer.headers['x-request-id'],
      });
    }
    expect(await topic.take()).toEqual([]);
    expect((await write(await begin(channelId), 'x', 1)).json).toMatchObject({ code: 'wrong_offset', length: 0 });
    topic.stop();
  });

  it('takes one of many deltas with the same offset, from two gateways', async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    const other = await api.startInstance();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const body = { text: `from ${n}`.padEnd(8), offset: 0 };
        const gateway = n % 2 === 0 ? api : other;
        return gateway.call({ method: 'POST', url: `/api/v1/interactions/${id}/deltas`, key: api.rootKey, body });
      }),
    );
    const written = answers.flatMap(({ status }, n) => (status === 200 ? [n] : []));
    expect(written).toHaveLength(1);
    expect(JSON.parse((await current(channelId))[0]?.json ?? '')).toMatchObject({
      text: `from ${written[0]}`.padEnd(8),
    });
    await other.stop();
  });

  it('is published as nested if the interaction is', async () => {
    const channelId = await newChannel();
    await call('POST', `/api/v1/channels/${channelId}/interactions`, { content: [], span_id: 'root' });
    // Members of the same name elsewhere in the interaction do not count.
    const id = await begin(channelId, { parent_span_id: 'root', metadata: { parent_span_id: null } });
    const topic = await listen(channelId);
    await write(id, 'a', 0);
    await write(id, 'b', 1);
    expect((await topic.take()).map(({ flags }) => flags)).toEqual([NESTED, NESTED]);
    expect(await current(channelId)).toMatchObject([{ flags: NESTED }]);
    topic.stop();
  });

  it.each(['complete', 'fail'] as const)(
    'is gone once the interaction ends by %s, and takes nothing more',
    async (how) => {
      const channelId = await newChannel();
      const [id, other] = [await begin(channelId), await begin(channelId)];
      await write(id, 'abc', 0);
      await write(other, 'stays', 0);
      expect((await end(id, how)).status).toBe(200);
      const answer = await write(id, 'x', 3);
      expect([answer.status, answer.json.code]).toEqual([409, 'complete_already']);
      expect((await current(channelId)).map(({ key }) => key)).toEqual([`draft:${other}`]);
      await end(other, how);
      expect(await keysIn(api.stores.platform.redis, `parley:drafts:*${channelId}*`)).toEqual([]);
    },
  );

  it.each(['complete', 'fail'] as const)('is not overtaken by the event that ends it: %s', async (how) => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    const applied = vi.spyOn(api.stores.platform.readModel, 'apply');
    await end(id, how);
    const publications = applied.mock.calls.flatMap(([writes]) => writes.map(({ publication }) => publication));
    applied.mockRestore();
    expect(publications.filter((one) => one?.topic.includes(channelId))).toContainEqual(
      expect.objectContaining({ followsEarlier: true }),
    );
  });

  it('is in no read and in no log, and expires', async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    await write(id, 'secret thought', 0);
    const read = await call('GET', `/api/v1/interactions/${id}?include_incomplete=true`);
    expect(read.bytes).not.toContain('secret thought');
    const { redis } = api.stores.platform;
    const keys = await keysIn(redis, `parley:drafts:*${channelId}*`);
    expect(keys).toHaveLength(2);
    for (const key of keys) {
      expect(await nodeWith(redis, key).pttl(key)).toBeGreaterThan(0);
      expect(await nodeWith(redis, key).pttl(key)).toBeLessThanOrEqual(300_000);
    }
    await redis.remove(keys.filter((key) => key.includes(':text:')));
    expect(await current(channelId)).toEqual([]);
    expect((await write(id, 'x', 14)).json).toMatchObject({ code: 'wrong_offset', length: 0 });
    expect((await write(id, 'anew', 0)).json.length).toBe(4);
  });

  it('has at most 1 MiB', async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    const part = 'é'.repeat(64 * 1024);
    for (let n = 0; n < 8; n++) expect((await write(id, part, n * part.length)).status).toBe(200);
    const answer = await write(id, 'x', 8 * part.length);
    expect([answer.status, answer.json.code]).toEqual([409, 'draft_too_long']);
    expect((await write(id, 'short')).json.length).toBe(5);
  });

  it("belongs to an interaction of the caller's organization", async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    const organization = (await call('POST', '/api/v1/organizations', { name: 'Others' })).json;
    const key = {
      name: 'k',
      scopes: ['write'],
      isMember: false,
      takesPart: false,
      principal: { type: 'service', id: 's' },
      organization_id: organization.id,
    };
    const foreign = (await call('POST', '/api/v1/keys', key)).json.key;
    const others = await call('POST', `/api/v1/interactions/${id}/deltas`, { text: 'x', offset: 0 }, foreign);
    const missing = await write(interactionId({ channelId, sequence: 99 as ChannelSequence }), 'x', 0);
    expect([others.status, missing.status, (await write('no-id', 'x')).status]).toEqual([404, 404, 404]);
    expect(others.bytes).toBe(missing.bytes);
    expect(await current(channelId)).toEqual([]);
  });

  it('needs the scope write, valid Unicode, and a valid offset', async () => {
    const id = await begin(await newChannel());
    const reader = (await call('POST', '/api/v1/keys', { name: 'r', scopes: ['read'], access: 'organization' })).json
      .key;
    const refused = await call('POST', `/api/v1/interactions/${id}/deltas`, { text: 'x' }, reader);
    expect([refused.status, refused.json.code]).toEqual([403, 'missing_scope']);
    const faults = async (body: object): Promise<object[]> => {
      const answer = await call('POST', `/api/v1/interactions/${id}/deltas`, body);
      expect(answer.status).toBe(422);
      return answer.json.detail.map(({ type, loc }: { type: string; loc: unknown }) => ({ type, loc }));
    };
    expect(await faults({})).toEqual([{ type: 'missing', loc: ['body', 'text'] }]);
    expect(await faults({ text: 1 })).toEqual([{ type: 'string_type', loc: ['body', 'text'] }]);
    expect(await faults({ text: '\ud83c' })).toEqual([{ type: 'string_unicode', loc: ['body', 'text'] }]);
    expect(await faults({ text: 'x', offset: -1 })).toEqual([{ type: 'greater_than_equal', loc: ['body', 'offset'] }]);
    expect(await faults({ text: 'x', offset: '0' })).toEqual([{ type: 'int_type', loc: ['body', 'offset'] }]);
    expect(await faults({ text: 'x', offset: 0.5 })).toEqual([{ type: 'int_from_float', loc: ['body', 'offset'] }]);
  });

  it('is refused while Redis is unavailable, and starts again after Redis has lost it', async () => {
    const channelId = await newChannel();
    const id = await begin(channelId);
    await write(id, 'abc', 0);
    await api.stores.redis.kill9();
    await eventually(async () => {
      const answer = await write(id, 'd', 3);
      expect([answer.status, answer.json.code]).toEqual([503, 'store_unavailable']);
      expect(answer.headers['retry-after']).toBe('2');
    });
    await api.stores.redis.restart();
    await eventually(async () => expect((await write(id, 'anew')).status).toBe(200));
    expect(await current(channelId)).toHaveLength(1);
  });
});
