/* A page of interactions says which events it reflects, so that a client that subscribes after it counts nothing twice. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { sequenceOf } from '#libs/kernel/event.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let channelId: string;
let url: string;

beforeAll(async () => {
  api = await startTestApi();
  channelId = (await call('POST', '/api/v1/channels', { name: 'busy' })).json.id;
  url = `/api/v1/channels/${channelId}/interactions`;
});
afterAll(() => api.stop());

async function call(method: Call['method'], path: string, body?: object): Promise<Answer> {
  const answer = await api.call({ method, url: path, key: api.rootKey, ...(body && { body }) });
  expect(answer.status).toBe(200);
  return answer;
}

const post = async (): Promise<string> => (await call('POST', url, { content: [] })).json.id;

/** What a page shows: the number of interactions, and the reactions of each. */
interface Shown {
  readonly sequence: number;
  readonly total: number;
  readonly reactions: Record<number, number>;
}

async function page(query = ''): Promise<Shown> {
  const { items, meta } = (await call('GET', `${url}?size=100${query}`)).json;
  const count = (reactions: readonly { count: number }[] | null) =>
    (reactions ?? []).reduce((sum, one) => sum + one.count, 0);
  return {
    sequence: meta.sequence,
    total: meta.total,
    reactions: Object.fromEntries(items.map((one: Answer['json']) => [one.sequence, count(one.reactions)])),
  };
}

/** What the log says that a page of each sequence shows. */
async function expected(): Promise<Map<number, Shown>> {
  const at = new Map<number, Shown>();
  let reactions: Record<number, number> = {};
  for await (const { type, data, revision } of api.stores.platform.store.readStream(`channel-${channelId}`)) {
    const sequence = Number(sequenceOf(revision));
    const target = Number((data as { sequence?: number }).sequence);
    if (type === 'InteractionPosted.v1') reactions = { ...reactions, [sequence]: 0 };
    else if (type === 'ReactionAdded.v1') reactions = { ...reactions, [target]: (reactions[target] ?? 0) + 1 };
    else if (type === 'ReactionRemoved.v1') reactions = { ...reactions, [target]: (reactions[target] ?? 0) - 1 };
    at.set(sequence, { sequence, total: Object.keys(reactions).length, reactions });
  }
  return at;
}

it('is that of the newest event, and a page without changes is that of a later one', async () => {
  const first = await page();
  expect(first).toEqual({ sequence: 1, total: 0, reactions: {} });
  const id = await post();
  await call('PUT', `/api/v1/interactions/${id}/reactions/👍`);
  expect(await page()).toEqual({ sequence: 3, total: 1, reactions: { 2: 1 } });
  expect(await page('&as_of=2')).toEqual({ sequence: 2, total: 1, reactions: { 2: 0 } });
});

it('is exact while the channel changes all the time, also for pages that are kept', async () => {
  const over = new AbortController();
  const writers = ['👍', '🎉', '🚀', '👀'].map(async (emoji) => {
    const id = await post();
    for (let round = 0; round < 60; round += 1) {
      await call(round % 2 === 0 ? 'PUT' : 'DELETE', `/api/v1/interactions/${id}/reactions/${emoji}`);
      if (round % 10 === 0) await post();
    }
  });
  const pages: Shown[] = [];
  const readers = ['', '&order=asc', '&content_role=user_message'].map(async (query) => {
    while (!over.signal.aborted) pages.push(await page(query));
  });
  await Promise.all(writers).finally(() => over.abort());
  await Promise.all(readers);
  for (let quiet = 0; quiet < 4; quiet += 1) pages.push(await page());
  const log = await expected();
  for (const one of pages) expect(one).toEqual(log.get(one.sequence));
  expect(new Set(pages.map(({ sequence }) => sequence)).size).toBeGreaterThan(5);
});
