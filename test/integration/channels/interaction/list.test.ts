import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { canonicalJson, TokenSigner } from '#libs/platform/http/signed-token.ts';
import { TOKEN_SECRET } from '#test/support/platform.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
/** A channel of 250 interactions: every third in one turn, every second a response, every seventh incomplete. */
let channel: string;
let all: Answer['json'][] = [];

const COUNT = 250;

beforeAll(async () => {
  api = await startTestApi();
  channel = (await call('POST', '/api/v1/channels', { type: 'websocket', name: 'A channel' })).json.id;
  all = await Promise.all(
    Array.from({ length: COUNT }, (_, n) => post(n, { complete: n % 7 !== 0 || n / 7 >= 30, content: [] })),
  );
  all.sort((a, b) => a.sequence - b.sequence);
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body && { body }) });
}

async function post(n: number, body: object): Promise<Answer['json']> {
  const answer = await call('POST', `/api/v1/channels/${channel}/interactions`, {
    ...body,
    content_role: n % 2 === 0 ? 'user_message' : 'agent_response',
    interaction_id: n % 3 === 0 ? 'turn' : `turn-${n}`,
  });
  if (answer.status !== 200) throw new Error(answer.bytes);
  return answer.json;
}

const list = async (query: string): Promise<Answer['json']> =>
  (await call('GET', `/api/v1/channels/${channel}/interactions?${query}`)).json;

/** The expected list, filtered from all interactions. Those that may be continued end before an incomplete one. */
function expected(query: URLSearchParams): Answer['json'][] {
  const includesIncomplete = query.get('include_incomplete') === 'true';
  const isContinued = query.get('order') === 'asc' || query.has('after_sequence') || query.has('created_after');
  const after = Number(query.get('after_sequence') ?? 0);
  const before = Number(query.get('before_sequence') ?? Infinity);
  const createdAfter = Date.parse(query.get('created_after') ?? '1970-01-01T00:00:00Z');
  const createdBefore = Date.parse(query.get('created_before') ?? '2999-01-01T00:00:00Z');
  const matching = all.filter(
    (one) =>
      one.sequence > after &&
      one.sequence < before &&
      Date.parse(one.created_at) > createdAfter &&
      Date.parse(one.created_at) < createdBefore &&
      (query.get('content_role') ?? one.content_role) === one.content_role &&
      (query.get('interaction_id') ?? one.interaction_id) === one.interaction_id,
  );
  const end = isContinued && !includesIncomplete ? matching.findIndex((one) => !one.complete) : -1;
  const shown = (end < 0 ? matching : matching.slice(0, end)).filter((one) => one.complete || includesIncomplete);
  return query.get('order') === 'asc' ? shown : shown.toReversed();
}

const FILTERS = [
  '',
  'include_incomplete=true',
  'order=asc',
  'order=asc&include_incomplete=true',
  'after_sequence=40&before_sequence=200',
  'order=asc&after_sequence=40&before_sequence=200',
  'content_role=agent_response',
  'interaction_id=turn&order=asc',
  'interaction_id=turn&content_role=user_message',
  'interaction_id=turn&content_role=user_message&order=asc&include_incomplete=true&after_sequence=100',
  'order=asc&after_sequence=204',
  'after_sequence=204&content_role=agent_response',
  'interaction_id=turn&content_role=agent_response&order=asc&after_sequence=130',
  'interaction_id=nothing',
  'before_sequence=1',
];

describe("a channel's interactions", () => {
  it('have sequences without a gap, though they were posted at once', () => {
    expect(all.map(({ sequence }) => sequence)).toEqual(Array.from({ length: COUNT }, (_, n) => n + 2));
  });

  it.each(FILTERS)('are listed whole by cursor and by page: %s', async (filter) => {
    const wanted = expected(new URLSearchParams(filter));
    const byCursor: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: Answer['json'] = await list(`${filter}&size=17${cursor === '' ? '' : `&cursor=${cursor}`}`);
      byCursor.push(...page.items);
      expect(page.meta.total).toBe(wanted.length);
      cursor = page.meta.next_cursor;
    }
    expect(byCursor).toEqual(wanted);
    const byPage: unknown[] = [];
    for (let page = 1; (page - 1) * 40 <= wanted.length; page++) {
      const { items, meta } = await list(`${filter}&size=40&page=${page}`);
      byPage.push(...items);
      expect(meta.has_next).toBe(page * 40 < wanted.length);
    }
    expect(byPage).toEqual(wanted);
    expect((await list(`${filter}&page=900000000`)).items).toEqual([]);
  });

  it('are listed by creation time, exclusively, in any time zone', async () => {
    const [early, late] = [all[205]?.created_at, all[240]?.created_at];
    const shifted = new Date(Date.parse(late) - 3_600_000).toISOString().replace('Z', '-01:00');
    for (const more of ['', '&content_role=agent_response', '&interaction_id=turn&order=asc&after_sequence=210']) {
      const wanted = expected(new URLSearchParams(`created_after=${early}&created_before=${late}${more}`));
      const query = `created_after=${early}&created_before=${encodeURIComponent(shifted)}${more}`;
      const { items, meta } = await list(`${query}&size=20`);
      expect([items, meta.total]).toEqual([wanted.slice(0, 20), wanted.length]);
      if (meta.next_cursor === null) continue;
      expect((await list(`${query}&size=100&cursor=${meta.next_cursor}`)).items).toEqual(wanted.slice(20, 120));
      expect((await list(`${more}&cursor=${meta.next_cursor}`)).detail).toBeDefined();
    }
    for (const junk of ['yesterday', '2026-01-31', '2026-01-31T12:00:00', '7']) {
      expect((await list(`created_after=${junk}`)).detail[0].loc).toEqual(['query', 'created_after']);
    }
  });

  it('continue cursors that versions with fewer parameters have signed, and so do channels', async () => {
    const tokens = new TokenSigner(TOKEN_SECRET);
    const cursor = (url: string, filter: object, last: string): string =>
      tokens.seal(['cursor', api.organizationId, url, canonicalJson(filter)], [2, last]);
    const former = { order: 'desc', include_incomplete: false, include_tool_call_updates: false, channel };
    const interactions = cursor('/api/v1/channels/:id/interactions', former, '100');
    const [first] = (await list(`size=1&cursor=${interactions}`)).items;
    expect(first.sequence).toBeLessThan(100);
    expect((await list(`size=1&include_reactors=true&cursor=${interactions}`)).items[0].id).toBe(first.id);
    const channels = cursor('/api/v1/channels', { archived: false }, `2999-01-01T00:00:00.000Z_${channel}`);
    expect((await call('GET', `/api/v1/channels?archived=false&cursor=${channels}`)).json.items[0].id).toBe(channel);
  });

  it('keep their pages under a cursor while new ones arrive', async () => {
    const wanted = expected(new URLSearchParams());
    const first = await list('size=30');
    const added = await Promise.all([1, 2, 3].map((n) => post(n, { content: [] })));
    const second = await list(`size=30&cursor=${first.meta.next_cursor}`);
    expect([...first.items, ...second.items]).toEqual(wanted.slice(0, 60));
    expect((await list('size=3')).items.map(({ id }: { id: string }) => id).sort()).toEqual(
      added.map(({ id }) => id).sort(),
    );
  });
});
