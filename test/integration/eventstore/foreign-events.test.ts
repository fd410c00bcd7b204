/** The log is shared: events that other applications write are skipped and counted, wherever they are read. */
import { jsonEvent } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { CHANNEL_READ_MODEL } from '#libs/features/channels/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import { PROJECTIONS } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { eventually } from '#test/support/eventually.ts';
import { foreignEvents, withForeignClient } from '#test/support/foreign-events.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { nodeWith } from '#test/support/redis-commands.ts';
import { startTestApi, type Answer, type Call, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let baseUrl: string;

/** The process counts them for all test files that it runs. */
let unknownBefore: number | undefined;
beforeAll(async () => {
  api = await startTestApi();
  baseUrl = await api.listen();
  unknownBefore = (await metric('events_skipped_total')).get('unknown_type');
});
afterAll(() => api.stop());

const call = (one: Call): Promise<Answer> => api.call({ key: api.rootKey, ...one });
const post = async (url: string, body: object): Promise<Answer['json']> => {
  const answer = await call({ method: 'POST', url, body });
  expect(answer).toMatchObject({ status: 200 });
  return answer.json;
};
const message = (text: string) => ({ content: [{ type: 'text', text }], content_role: 'user_message' });

async function write(stream: string): Promise<void> {
  await withForeignClient(api.stores.eventStore.url, async (client) => {
    for (const [, event] of foreignEvents) await client.appendToStream(stream, event());
  });
}

interface Frame {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
}

/** Reads a stream of server-sent events up to a sequence. */
async function framesOf(path: string, last: number): Promise<Frame[]> {
  const signal = AbortSignal.timeout(20_000);
  const headers = { authorization: api.rootKey, 'last-event-id': '0' };
  const response = await fetch(baseUrl + path, { headers, signal });
  expect(response.status).toBe(200);
  const frames: Frame[] = [];
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    frames.length = 0;
    for (const [, json] of text.matchAll(/^data: (.*)\n\n/gm)) frames.push(JSON.parse(json!) as Frame);
    if ((frames.at(-1)?.seq ?? 0) >= last) break;
  }
  return frames;
}

async function metric(name: string): Promise<Map<string, number>> {
  const text = await api.stores.platform.metrics.scrape();
  return new Map(
    [...text.matchAll(new RegExp(`^parley_${name}\\{reason="(\\w+)"\\} (\\d+)$`, 'gm'))].map(([, reason, count]) => [
      reason!,
      Number(count),
    ]),
  );
}

async function reflected(channel: string): Promise<number> {
  const { revision } = entityKeys(CHANNEL_READ_MODEL, api.organizationId, channel);
  return Number(await nodeWith(api.stores.platform.redis, revision).get(revision));
}

async function projected(): Promise<void> {
  const { id } = await post('/api/v1/channels', { name: 'The newest' });
  await eventually(async () => {
    const found = await call({ method: 'GET', url: '/api/v1/channels?limit=100' });
    return found.status === 200 && found.bytes.includes(id) && (await api.features.state.isComplete());
  });
}

describe('streams of another application', () => {
  it('in the categories of Parley stop neither the projector nor a restart nor a rebuild', async () => {
    for (const { category } of PROJECTIONS) await write(`${category}-4711`);
    await projected();
    const start = await api.stopProjector();
    await start();
    await projected();
    const { projector, state } = api.features;
    await rebuild({ feed: api.stores.platform.feed, projector, state }, { signal: AbortSignal.timeout(60_000) });
    await projected();
    for (const path of ['users', 'channels', 'agents', 'media', 'crawls', 'reports', 'documents', 'knowledge']) {
      expect([path, (await call({ method: 'GET', url: `/api/v1/${path}` })).status]).toEqual([path, 200]);
    }
    for (const path of ['users', 'channels', 'agents', 'media', 'crawls', 'reports', 'documents', 'knowledge']) {
      const url = `/api/v1/${path}/4711`;
      expect([path, (await call({ method: 'GET', url })).status]).toEqual([path, 404]);
    }
  });

  it('are counted by reason', async () => {
    const counts = await metric('events_skipped_total');
    for (const reason of ['metadata', 'no_metadata', 'no_organization', 'system_type']) {
      expect([reason, counts.get(reason)]).toEqual([reason, expect.any(Number)]);
    }
    expect(counts.get('unknown_type')).toBe(unknownBefore);
  });
});

describe('events of another application in a stream of Parley', () => {
  let channel: string;
  let head: number;

  const etag = async (): Promise<string> =>
    String((await call({ method: 'GET', url: `/api/v1/channels/${channel}` })).headers['etag']);

  beforeAll(async () => {
    channel = (await post('/api/v1/channels', { name: 'Shared' })).id;
    await post(`/api/v1/channels/${channel}/interactions`, message('before'));
    head = 2;
  });

  it.each(foreignEvents)('leave its entity as it is: %s', async (_what, event) => {
    await withForeignClient(api.stores.eventStore.url, (client) =>
      client.appendToStream(`channel-${channel}`, event()),
    );
    head += 1;
    // The read model moves on, so a client can still change the entity that it sees.
    await eventually(async () => (await reflected(channel)) === head - 1);
    const before = await etag();
    const patched = await call({
      method: 'PATCH',
      url: `/api/v1/channels/${channel}`,
      body: { name: `Shared ${head}` },
      headers: { 'if-match': before },
    });
    expect(patched).toMatchObject({ status: 200, json: { name: `Shared ${head}` } });
    head += 1;
    const posted = await post(`/api/v1/channels/${channel}/interactions`, message('after'));
    head += 1;
    expect(posted).toMatchObject({ sequence: head });
  });

  it('have a frame without content, so that the sequence has no gap', async () => {
    const frames = await framesOf(`/api/v1/channels/${channel}/events`, head);
    expect(frames.map(({ seq }) => seq)).toEqual(Array.from({ length: head }, (_, index) => index + 1));
    const unknown = frames.filter(({ type }) => type === 'unknown');
    expect(unknown).toHaveLength(foreignEvents.length);
    for (const frame of unknown) {
      expect(frame).toMatchObject({ data: null });
      expect(Date.parse(frame.at)).toBeGreaterThan(0);
    }
  });

  it('are passed over by reads of the past, and by a fold of the whole log', async () => {
    const url = `/api/v1/channels/${channel}?as_of=${head}`;
    const before = await call({ method: 'GET', url });
    expect(before).toMatchObject({ status: 200, json: { id: channel, name: `Shared ${head - 2}` } });
    const list = `/api/v1/channels/${channel}/interactions?limit=100`;
    const interactions = await call({ method: 'GET', url: list });
    const { projector, state } = api.features;
    await rebuild({ feed: api.stores.platform.feed, projector, state }, { signal: AbortSignal.timeout(60_000) });
    expect((await call({ method: 'GET', url })).bytes).toBe(before.bytes);
    expect((await call({ method: 'GET', url: list })).bytes).toBe(interactions.bytes);
  });

  it('and at its end do not delay a command of a process that knows nothing of it', async () => {
    const other = await api.startInstance();
    const url = `/api/v1/channels/${channel}/interactions`;
    await withForeignClient(api.stores.eventStore.url, async (client) => {
      for (const [, event] of foreignEvents) await client.appendToStream(`channel-${channel}`, event());
    });
    const answer = await other.call({ method: 'POST', url, key: api.rootKey, body: message('from another') });
    head += foreignEvents.length + 1;
    expect(answer).toMatchObject({ status: 200, json: { sequence: head } });
    await other.stop();
  });

  it('do not hide that of its organization', async () => {
    const own = (await post('/api/v1/agents', { name: 'An agent' })).id;
    await write(`agent-${own}`);
    const frames = await framesOf(`/api/v1/agents/${own}/events`, 1 + foreignEvents.length);
    expect(frames.map(({ seq }) => seq)).toEqual(Array.from({ length: foreignEvents.length + 1 }, (_, n) => n + 1));
    const patched = await call({ method: 'PATCH', url: `/api/v1/agents/${own}`, body: { name: 'Renamed' } });
    expect(patched).toMatchObject({ status: 200, json: { name: 'Renamed' } });
  });

  it('never begin a stream of another organization', async () => {
    const id = newId();
    await write(`agent-${id}`);
    expect((await call({ method: 'GET', url: `/api/v1/agents/${id}` })).status).toBe(404);
    expect((await call({ method: 'GET', url: `/api/v1/agents/${id}/events` })).status).toBe(404);
  });
});

describe('an event of Parley', () => {
  it('of a type that this version does not know is counted as such', async () => {
    const id = newId();
    const event = jsonEvent({ type: 'ChannelFramed.v9', data: {}, metadata: { ...logMetadata(id) } as never });
    await withForeignClient(api.stores.eventStore.url, (client) => client.appendToStream(`channel-${id}`, event));
    await projected();
    expect((await metric('events_skipped_total')).get('unknown_type')).toBeGreaterThan(0);
  });
});
