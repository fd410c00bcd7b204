/** Operators delete and truncate streams: Parley starts, and says what is gone, to readers and writers alike. */
import type { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { parseConfig } from '#libs/platform/config/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { LogWitness } from '#libs/platform/readmodel/index.ts';
import { PROJECTIONS } from '#services/features.ts';
import { refuseLostLog } from '#services/log-check.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { start as startRealtime } from '#services/realtime/role.ts';
import { eventually } from '#test/support/eventually.ts';
import { withForeignClient } from '#test/support/foreign-events.ts';
import { startTestApi, type Answer, type Call, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let baseUrl: string;
let realtime: RunningRole;

beforeAll(async () => {
  api = await startTestApi();
  baseUrl = await api.listen();
  const context = { platform: api.stores.platform, features: api.features, logChecked: Promise.resolve() };
  realtime = await startRealtime(context, parseConfig({}));
});
afterAll(async () => {
  await realtime.stop();
  await api.stop();
});

const call = (one: Call): Promise<Answer> => api.call({ key: api.rootKey, ...one });
const post = async (url: string, body: object): Promise<Answer['json']> => {
  const answer = await call({ method: 'POST', url, body });
  expect(answer).toMatchObject({ status: 200 });
  return answer.json;
};
const message = (text: string) => ({ content: [{ type: 'text', text }], content_role: 'user_message' });
const posts = (channel: string): string => `/api/v1/channels/${channel}/interactions`;

async function channelOf(events: number): Promise<string> {
  const { id } = await post('/api/v1/channels', { name: 'To be removed' });
  for (let sequence = 2; sequence <= events; sequence++) await post(posts(id), message(String(sequence)));
  return id;
}

const operate = <T>(use: (client: EventStoreDBClient) => Promise<T>): Promise<T> =>
  withForeignClient(api.stores.eventStore.url, use);

async function isEmpty(client: EventStoreDBClient, stream: string): Promise<boolean> {
  try {
    let isFound = false;
    for await (const _event of client.readStream(stream)) isFound = true;
    return !isFound;
  } catch {
    return true;
  }
}

const removals: readonly (readonly [string, (client: EventStoreDBClient, stream: string) => Promise<unknown>])[] = [
  ['deleted', (client, stream) => client.deleteStream(stream)],
  ['deleted for good', (client, stream) => client.tombstoneStream(stream)],
  ['truncated to its end', (client, stream) => client.setStreamMetadata(stream, { truncateBefore: 3 })],
  ['truncated before its end', (client, stream) => client.setStreamMetadata(stream, { truncateBefore: 2 })],
  ['limited to one event', (client, stream) => client.setStreamMetadata(stream, { maxCount: 1 })],
  [
    'limited to an age',
    async (client, stream) => {
      await client.setStreamMetadata(stream, { maxAge: 1 });
      await eventually(() => isEmpty(client, stream));
    },
  ],
];

describe('a stream that holds the newest event of its category', () => {
  let startAgain: (() => Promise<void>) | undefined;
  afterEach(() => startAgain?.());

  it.each(removals)('and is %s prevents neither a start nor a rebuild', async (_what, remove) => {
    const channel = await channelOf(3);
    const witness = new LogWitness(api.stores.platform.redis, PROJECTIONS);
    await eventually(async () =>
      (await witness.saved()).some(({ stream, revision }) => stream.endsWith(channel) && revision === 2),
    );
    startAgain = await api.stopProjector();
    await operate((client) => remove(client, `channel-${channel}`));
    await refuseLostLog(api.stores.platform);
    await startAgain();
    startAgain = undefined;
    const { projector, state } = api.features;
    await rebuild({ feed: api.stores.platform.feed, projector, state }, { signal: AbortSignal.timeout(60_000) });
    expect((await call({ method: 'GET', url: '/api/v1/channels' })).status).toBe(200);
    await post('/api/v1/channels', { name: 'After it' });
  });
});

interface Closed {
  readonly code: number;
  readonly reason: string;
}

/** Resumes a websocket after a sequence. @returns the sequences received, and how the server closed it, if it did */
async function resume(
  channel: string,
  after: number,
  last: number,
): Promise<{ seqs: number[]; closed: Closed | null }> {
  const { value } = await post(`/api/v1/channels/${channel}/websocket_ticket`, {});
  const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}/api/v1/channels/${channel}/websocket?ticket=${value}`);
  const seqs: number[] = [];
  return new Promise((resolve, reject) => {
    socket.addEventListener('error', () => reject(new Error('the socket failed')));
    socket.addEventListener('close', ({ code, reason }) => resolve({ seqs, closed: { code, reason } }));
    socket.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(String(data)) as { frame: string; seq: number };
      if (frame.frame === 'hello') socket.send(JSON.stringify({ frame: 'resume', after }));
      if (frame.frame === 'event') seqs.push(frame.seq);
      if (frame.frame !== 'event' || frame.seq < last) return;
      resolve({ seqs, closed: null });
      socket.close();
    });
  });
}

async function eventsAfter(
  path: string,
  after: number,
  last: number,
): Promise<{ status: number; seqs: number[]; json: unknown }> {
  const signal = AbortSignal.timeout(20_000);
  const response = await fetch(`${baseUrl}${path}?after=${after}`, { headers: { authorization: api.rootKey }, signal });
  if (response.status !== 200) return { status: response.status, seqs: [], json: await response.json() };
  const seqs: number[] = [];
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    seqs.length = 0;
    for (const [, seq] of text.matchAll(/^id: (\d+)$/gm)) seqs.push(Number(seq));
    if ((seqs.at(-1) ?? 0) >= last) break;
  }
  return { status: 200, seqs, json: null };
}

describe('a truncated channel', () => {
  const EVENTS = 12;
  let channel: string;
  let path: string;

  beforeAll(async () => {
    channel = await channelOf(EVENTS);
    path = `/api/v1/channels/${channel}/events`;
    await operate((client) => client.setStreamMetadata(`channel-${channel}`, { truncateBefore: 6 }));
  });

  it('refuses event streams whose start is gone, with the first sequence that exists', async () => {
    for (const after of [0, 5]) {
      expect(await eventsAfter(path, after, EVENTS)).toMatchObject({
        status: 410,
        json: { code: 'gone', first_sequence: 7, detail: expect.stringContaining('7') },
      });
    }
  });

  it('is followed from there, without a gap', async () => {
    const expected = [7, 8, 9, 10, 11, 12];
    expect(await eventsAfter(path, 6, EVENTS)).toMatchObject({ status: 200, seqs: expected });
    expect(await eventsAfter(path, 8, EVENTS)).toMatchObject({ status: 200, seqs: expected.slice(2) });
    const other = await api.startInstance();
    expect(await resume(channel, 6, EVENTS)).toEqual({ seqs: expected, closed: null });
    await other.stop();
  });

  it('closes websockets whose start is gone, with a code after which clients do not reconnect', async () => {
    const { seqs, closed } = await resume(channel, 0, EVENTS);
    expect(seqs).toEqual([]);
    expect(closed).toEqual({ code: 4505, reason: expect.stringContaining('7') });
  });

  it('takes commands, and gives the past that exists', async () => {
    expect(await post(posts(channel), message('on'))).toMatchObject({ sequence: EVENTS + 1 });
    const patched = await call({ method: 'PATCH', url: `/api/v1/channels/${channel}`, body: { name: 'Truncated' } });
    expect(patched).toMatchObject({ status: 200, json: { name: 'Truncated' } });
    const past = await call({ method: 'GET', url: `/api/v1/channels/${channel}?as_of=3` });
    expect([past.status, past.json.code]).toEqual([410, 'gone']);
  });

  it('is followed over several pages', async () => {
    const long = await channelOf(1);
    const posted = Array.from({ length: 520 }, (_, index) => post(posts(long), message(`${index}`)));
    await Promise.all(posted);
    await operate((client) => client.setStreamMetadata(`channel-${long}`, { truncateBefore: 4 }));
    const { seqs } = await eventsAfter(`/api/v1/channels/${long}/events`, 4, 521);
    expect(seqs).toEqual(Array.from({ length: 517 }, (_, index) => index + 5));
  });
});

describe('a truncated entity', () => {
  it('refuses event streams in the same way', async () => {
    const agent = (await post('/api/v1/agents', { name: 'An agent' })).id;
    for (const name of ['b', 'c', 'd']) {
      await call({ method: 'PATCH', url: `/api/v1/agents/${agent}`, body: { name } });
    }
    await operate((client) => client.setStreamMetadata(`agent-${agent}`, { truncateBefore: 2 }));
    const path = `/api/v1/agents/${agent}/events`;
    expect(await eventsAfter(path, 0, 4)).toMatchObject({ status: 410, json: { first_sequence: 3 } });
    const renamed = await call({ method: 'PATCH', url: `/api/v1/agents/${agent}`, body: { name: 'e' } });
    expect(renamed).toMatchObject({ status: 200, json: { name: 'e' } });
  });
});

describe('a deleted channel', () => {
  it.each(removals.slice(0, 2))(
    'that is %s is gone for commands and for readers of its events',
    async (_what, remove) => {
      const channel = await channelOf(3);
      await operate((client) => remove(client, `channel-${channel}`));
      // Another process, which has not cached its state.
      const other = await api.startInstance();
      // Without Redis it would fold the stream alone, and a deleted stream looks like one that never existed.
      const isConnected = async () =>
        (await other.call({ key: api.rootKey, method: 'GET', url: '/api/v1/channels' })).status === 200;
      await eventually(isConnected);
      const request = { key: api.rootKey, method: 'POST', url: posts(channel), body: message('x') } as const;
      const answer = await other.call(request);
      expect([answer.status, answer.json.code]).toEqual([410, 'gone']);
      expect(answer.json.detail).not.toContain('try');
      await other.stop();
      expect((await eventsAfter(`/api/v1/channels/${channel}/events`, 0, 3)).status).toBe(404);
    },
  );

  it('is gone for a process that has its state in memory', async () => {
    const channel = await channelOf(3);
    await operate((client) => client.tombstoneStream(`channel-${channel}`));
    const answer = await call({ method: 'POST', url: posts(channel), body: message('x') });
    expect([answer.status, answer.json.code]).toEqual([410, 'gone']);
  });
});
