/** A poller that continues after the last sequence it saw gets every interaction once, whenever they complete. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

async function call(method: Call['method'], url: string, body?: object): Promise<Answer['json']> {
  const answer = await api.call({ method, url, key: api.rootKey, ...(body && { body }) });
  if (answer.status !== 200) throw new Error(answer.bytes);
  return answer.json;
}

const newChannel = async (): Promise<string> =>
  (await call('POST', '/api/v1/channels', { type: 'websocket', name: 'polled' })).id;

const post = (channel: string, body: object = {}): Promise<Answer['json']> =>
  call('POST', `/api/v1/channels/${channel}/interactions`, { content: [], content_role: 'user_message', ...body });

const list = (channel: string, query: string): Promise<Answer['json']> =>
  call('GET', `/api/v1/channels/${channel}/interactions?${query}`);

/** Reads all pages after `seen`, which it adds to. */
type Poll = (channel: string, seen: Answer['json'][]) => Promise<void>;

const bySequence =
  (query: string): Poll =>
  async (channel, seen) => {
    for (let more = true; more;) {
      const after = Math.max(0, ...seen.map(({ sequence }) => sequence));
      const { items, meta } = await list(channel, `after_sequence=${after}&${query}`);
      seen.push(...items);
      more = meta.has_next;
    }
  };

/** Reads newest first, as lists are without an order: all pages of one poll, by cursor. */
const newestFirst: Poll = async (channel, seen) => {
  const after = Math.max(0, ...seen.map(({ sequence }) => sequence));
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = `after_sequence=${after}&size=3${cursor === '' ? '' : `&cursor=${cursor}`}`;
    const { items, meta }: Answer['json'] = await list(channel, query);
    seen.push(...items);
    cursor = meta.next_cursor;
  }
};

const byTime: Poll = async (channel, seen) => {
  const after = seen.at(-1)?.created_at ?? '2000-01-01T00:00:00Z';
  seen.push(...(await list(channel, `created_after=${after}&size=100&order=asc`)).items);
};

describe('a poller', () => {
  it.each<[string, Poll, (one: Answer['json']) => boolean]>([
    ['ascending', bySequence('order=asc&size=2'), () => true],
    ['newest first', newestFirst, () => true],
    ['by time', byTime, () => true],
    [
      'of one role',
      bySequence('order=asc&content_role=agent_response'),
      ({ content_role }) => content_role === 'agent_response',
    ],
    ['of one turn', bySequence('order=asc&interaction_id=turn'), ({ interaction_id }) => interaction_id === 'turn'],
    [
      'of one role in one turn',
      bySequence('order=asc&interaction_id=turn&content_role=user_message'),
      ({ interaction_id, content_role }) => interaction_id === 'turn' && content_role === 'user_message',
    ],
  ])('%s gets every interaction once', async (_how, poll, matches) => {
    const channel = await newChannel();
    const posted: Answer['json'][] = [];
    const open: string[] = [];
    const seen: Answer['json'][] = [];
    // A fixed sequence of posts, of which every third stays incomplete until two or five steps later.
    for (let step = 0; step < 24; step++) {
      const complete = step % 3 !== 1;
      const one = await post(channel, {
        complete,
        content_role: step % 4 < 2 ? 'agent_response' : 'user_message',
        interaction_id: step % 5 < 3 ? 'turn' : `turn-${step}`,
      });
      posted.push(one);
      if (!complete) open.push(one.id);
      if (step % 4 === 3) await poll(channel, seen);
      if (step % 4 === 0 && open.length > 1) await call('POST', `/api/v1/interactions/${open.pop()}/complete`, {});
      // Interactions of the same millisecond cannot be told apart by time.
      if (poll === byTime) while (Date.now() <= Date.parse(one.created_at)) await new Promise(setImmediate);
    }
    for (const id of open) {
      await poll(channel, seen);
      await call('POST', `/api/v1/interactions/${id}/fail`, { reason: 'crashed' });
    }
    await poll(channel, seen);
    const ids = (items: readonly Answer['json'][]) => items.map(({ id }) => id).sort();
    expect(ids(seen)).toEqual(ids(posted.filter(matches)));
  });

  it('sees which incomplete interaction ends the list, and may read beyond it', async () => {
    const channel = await newChannel();
    const first = await post(channel);
    const open = await post(channel, { complete: false });
    const last = await post(channel, { content_role: 'agent_response' });
    const ended = await list(channel, 'after_sequence=0');
    expect(ended.items).toEqual([first]);
    expect(ended.meta).toMatchObject({ total: 1, has_next: false, oldest_incomplete: open.id });
    const ids = async (query: string) => (await list(channel, query)).items.map(({ id }: { id: string }) => id);
    expect(await ids('order=asc&include_incomplete=true')).toEqual([first.id, open.id, last.id]);
    // One that does not match cannot be missed.
    expect(await ids('after_sequence=0&content_role=agent_response')).toEqual([last.id]);
    // The newest page is for people who read: it shows what is complete.
    expect(await ids('')).toEqual([last.id, first.id]);
    expect((await list(channel, '')).meta).not.toHaveProperty('oldest_incomplete');
    const past = await list(channel, `order=asc&as_of=${last.sequence}`);
    expect(past.items.map(({ id }: { id: string }) => id)).toEqual([first.id]);
    await call('POST', `/api/v1/interactions/${open.id}/complete`, {});
    expect(await ids(`after_sequence=${first.sequence}`)).toEqual([last.id, open.id]);
    expect((await list(channel, 'after_sequence=0')).meta).not.toHaveProperty('oldest_incomplete');
  });
});
