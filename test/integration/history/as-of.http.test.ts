/* `as_of` over HTTP. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { type Answer, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let channel: string;
let first: string;
let draft: string;
let reply: string;

const get = (url: string, headers: Record<string, string> = {}): Promise<Answer> =>
  api.call({ method: 'GET', url, key: api.rootKey, headers });

async function send(method: 'POST' | 'PATCH' | 'PUT' | 'DELETE', url: string, body?: object): Promise<Answer['json']> {
  const answer = await api.call({ method, url, key: api.rootKey, ...(body && { body }) });
  expect(answer).toMatchObject({ status: 200 });
  return answer.json;
}

const text = (said: string) => [{ type: 'text', text: said }];
const asOf = (point: string | number): string => `as_of=${encodeURIComponent(point)}`;
const channelAt = (point: string | number): Promise<Answer> => get(`/api/v1/channels/${channel}?${asOf(point)}`);
const interactionAt = (id: string, point: string | number, more = ''): Promise<Answer> =>
  get(`/api/v1/interactions/${id}?${asOf(point)}${more}`);
const listAt = (point: string | number, more = ''): Promise<Answer> =>
  get(`/api/v1/channels/${channel}/interactions?${asOf(point)}${more}`);
const idsOf = ({ json }: Answer): string[] => json.items.map((item: { id: string }) => item.id);

/* Sequences: 1 created, 2 first, 3 renamed, 4 draft begun, 5 reply below it, 6 extended, 7 completed. */
beforeAll(async () => {
  api = await startTestApi();
  channel = (await send('POST', '/api/v1/channels', { name: 'before' })).id;
  const posts = `/api/v1/channels/${channel}/interactions`;
  first = (await send('POST', posts, { content: text('hello') })).id;
  await send('PATCH', `/api/v1/channels/${channel}`, { name: 'after' });
  const begun = await send('POST', posts, { content: text('so'), complete: false });
  draft = begun.id;
  reply = (await send('POST', posts, { content: text('what?'), parent_span_id: begun.span_id })).id;
  await send('POST', `/api/v1/interactions/${draft}/content`, { content: text('far') });
  await send('POST', `/api/v1/interactions/${draft}/complete`, { content: text('done') });
});
afterAll(() => api?.stop());

describe('GET /channels/{id}?as_of', () => {
  it('shows the channel as it was', async () => {
    for (const [sequence, name] of [
      [1, 'before'],
      [2, 'before'],
      [3, 'after'],
      [7, 'after'],
      [999_999_999, 'after'],
    ] as const) {
      expect((await channelAt(sequence)).json).toMatchObject({ id: channel, name });
    }
    expect((await channelAt(999)).bytes).toBe((await get(`/api/v1/channels/${channel}`)).bytes);
  });

  it('accepts a time with any offset, and shows nothing before the channel existed', async () => {
    const { created_at: createdAt } = (await channelAt(1)).json;
    expect((await channelAt(createdAt)).status).toBe(200);
    const shifted = new Date(Date.parse(createdAt) + 3_600_000).toISOString().replace('Z', '+01:00');
    expect((await channelAt(shifted)).bytes).toBe((await channelAt(createdAt)).bytes);
    expect((await channelAt(new Date(Date.parse(createdAt) - 1).toISOString())).status).toBe(404);
    expect((await channelAt('2999-01-01T00:00:00Z')).json.name).toBe('after');
  });

  it('answers 404 before the creation, and for channels that are missing or another organization’s, alike', async () => {
    const before = await channelAt(0);
    expect(before.status).toBe(404);
    const missing = await get('/api/v1/channels/01900000-0000-7000-8000-000000000000?as_of=1');
    expect(missing.status).toBe(404);
    expect(before.json.detail).toBe(missing.json.detail);
  });

  it('has the ETag of its state, and answers 304 only to that ETag', async () => {
    const now = await get(`/api/v1/channels/${channel}`);
    const then = await channelAt(2);
    expect(then.headers['etag']).not.toBe(now.headers['etag']);
    const url = `/api/v1/channels/${channel}?as_of=2`;
    expect((await get(url, { 'if-none-match': String(now.headers['etag']) })).bytes).toBe(then.bytes);
    expect((await get(url, { 'if-none-match': String(then.headers['etag']) })).status).toBe(304);
    // The same bytes have the same ETag, whichever point was asked for.
    const same = await channelAt(5);
    expect([same.bytes, same.headers['etag']]).toEqual([now.bytes, now.headers['etag']]);
  });
});

describe('GET /interactions/{interaction_id}?as_of', () => {
  it('is 404 before it was posted, and incomplete, with its content of then, until it was completed', async () => {
    expect((await interactionAt(draft, 3, '&include_incomplete=true')).status).toBe(404);
    for (const [sequence, content] of [
      [4, text('so')],
      [5, text('so')],
      [6, [...text('so'), ...text('far')]],
    ] as const) {
      expect((await interactionAt(draft, sequence)).status).toBe(404);
      expect((await interactionAt(draft, sequence, '&include_incomplete=true')).json).toMatchObject({
        id: draft,
        complete: false,
        content,
      });
    }
    const completed = await interactionAt(draft, 7);
    expect(completed.json).toMatchObject({ complete: true, content: text('done') });
    expect(completed.bytes).toBe((await get(`/api/v1/interactions/${draft}`)).bytes);
  });

  it('shows the interactions that existed below it', async () => {
    const nested = '&include_incomplete=true&include_nested_interactions=true';
    expect((await interactionAt(draft, 4, nested)).json.nested_interactions).toEqual([]);
    const { nested_interactions: below } = (await interactionAt(draft, 6, nested)).json;
    expect(below).toEqual([expect.objectContaining({ id: reply, complete: true })]);
  });
});

describe('reactions and receipts of an interaction', () => {
  it('are shown as they were, also after they were taken back', async () => {
    const at = (await send('POST', '/api/v1/channels', { name: 'reactions' })).id;
    const posts = `/api/v1/channels/${at}/interactions`;
    const participant = { type: 'authenticated_user', user_id: api.userId };
    const { id } = await send('POST', posts, { content: text('hello'), participant });
    const reaction = `/api/v1/interactions/${id}/reactions/${encodeURIComponent('👍')}`;
    const otto = { agent_id: 'agent-1', agent_name: 'Otto' };
    /* Sequences: 1 created, 2 posted, 3 reacted, 4 read, 5 taken back, 6 reacted again. */
    await send('PUT', reaction, otto);
    await send('POST', `/api/v1/interactions/${id}/read_receipts`, { agent_id: 'agent-1' });
    await send('DELETE', `${reaction}?agent_id=agent-1`);
    const now = await send('PUT', reaction, otto);
    const { items } = (await get(`${posts}?as_of=4`)).json;
    const seen = await Promise.all([2, 3, 4, 5, 6].map((sequence) => interactionAt(id, sequence)));
    expect(seen.map(({ json }) => json.reactions?.[0].reactor_names ?? null)).toEqual([
      null,
      ['Otto'],
      ['Otto'],
      null,
      ['Otto'],
    ]);
    expect(seen.map(({ json }) => json.agent_read_receipts?.length ?? 0)).toEqual([0, 0, 1, 1, 1]);
    expect(seen[4]?.json).toEqual(now);
    expect(items).toEqual([seen[2]?.json]);
  });
});

describe('GET /channels/{id}/interactions?as_of', () => {
  it('lists the interactions of that point, as they were', async () => {
    expect(idsOf(await listAt(1))).toEqual([]);
    expect(idsOf(await listAt(6))).toEqual([reply, first]);
    expect((await listAt(6)).json.meta.total).toBe(2);
    const all = await listAt(6, '&include_incomplete=true&order=asc');
    expect(idsOf(all)).toEqual([first, draft, reply]);
    expect(all.json.items[1]).toMatchObject({ complete: false, content: [...text('so'), ...text('far')] });
    expect(idsOf(await listAt(7))).toEqual([reply, draft, first]);
    expect((await listAt(0)).status).toBe(404);
  });

  it('pages with cursors that are valid for that point only', async () => {
    const page = await listAt(7, '&size=2');
    const cursor = encodeURIComponent(page.json.meta.next_cursor);
    expect(idsOf(await listAt(7, `&size=2&cursor=${cursor}`))).toEqual([first]);
    expect((await listAt(6, `&size=2&cursor=${cursor}`)).status).toBe(422);
  });
});

describe('as_of', () => {
  it('is 422 where it is neither a sequence nor a time', async () => {
    const refused = {
      '-1': 'greater_than_equal',
      '1.5': 'int_parsing',
      '12345678901234567': 'int_parsing_size',
      yesterday: 'datetime_from_date_parsing',
      '': 'datetime_from_date_parsing',
      '5 ': 'datetime_from_date_parsing',
      '2026-01-31': 'timezone_aware',
      '2026-01-31T12:00:00': 'timezone_aware',
    };
    for (const [junk, type] of Object.entries(refused)) {
      for (const answer of [await channelAt(junk), await interactionAt(first, junk), await listAt(junk)]) {
        expect({ junk, status: answer.status }).toEqual({ junk, status: 422 });
        expect(answer.json.detail).toMatchObject([{ type, loc: ['query', 'as_of'] }]);
      }
    }
    const [problem] = (await channelAt('abc')).json.detail;
    expect(problem.msg).toBe('Input should be a sequence or a valid datetime, input is too short');
    const twice = await get(`/api/v1/channels/${channel}?as_of=1&as_of=2`);
    expect(twice.status).toBe(422);
  });

  it('is documented in the OpenAPI document', async () => {
    const { paths } = (await get('/openapi.json')).json;
    for (const path of [
      '/api/v1/channels/{id}',
      '/api/v1/interactions/{interaction_id}',
      '/api/v1/channels/{id}/interactions',
    ]) {
      expect(paths[path].get.parameters).toContainEqual(
        expect.objectContaining({ name: 'as_of', in: 'query', required: false }),
      );
    }
  });
});

describe('many reads of the past at once', () => {
  it('are 429 beyond the queue of one organization, while reads of the present are answered', async () => {
    // Two reads of other organizations run, and do not end before the others wait.
    const running = Promise.withResolvers<void>();
    const signal = new AbortController().signal;
    const others = ['one', 'another'].map((name) =>
      api.app.pastReads.run({ organizationId: name, address: name, signal }, () => running.promise),
    );
    const answered: Answer[] = [];
    const past = Array.from({ length: 60 }, async () => answered.push(await listAt(2)));
    const present = Array.from({ length: 60 }, () => get(`/api/v1/channels/${channel}/interactions`));
    expect(new Set((await Promise.all(present)).map(({ status }) => status))).toEqual(new Set([200]));
    // 32 may wait. On a busy machine, some have waited longer than a read may (503).
    await eventually(() => answered.length >= 28);
    expect(answered.find(({ status }) => status === 429)).toMatchObject({
      json: { code: 'rate_limited' },
      headers: { 'retry-after': '1' },
    });
    const unread = answered.length;
    expect(answered.filter(({ status }) => status === 429 || status === 503)).toHaveLength(unread);
    running.resolve();
    await Promise.all([...past, ...others]);
    expect(answered.slice(unread).filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    expect((await listAt(2)).status).toBe(200);
  });
});
