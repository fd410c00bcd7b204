/*
 * A gateway dies between append and answer: the same request at another gateway leaves one event and gets its answer.
 */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, Reply } from '#test/support/api-client.ts';
import { answerOf } from '#test/support/channel-load.ts';
import { eventually } from '#test/support/eventually.ts';
import { foldInteractions } from '#test/support/interaction-fold.ts';
import { asRecord, readLog } from '#test/support/log-reader.ts';
import type { ParleyProcess } from '#test/support/parley-process.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { startTwoNodes, type TwoNodes } from '#test/support/realtime/nodes.ts';

let nodes: TwoNodes;
let eventStore: TwoNodes['eventStore'];
let redis: TwoNodes['redis'];
let one: ParleyProcess;
let other: ParleyProcess;
let watches: readonly Redis[] = [];
let lookUps = 0;

beforeAll(async () => {
  // The other gateway has no projector: everything that it reads was applied by one of the two.
  nodes = await startTwoNodes();
  ({ eventStore, redis, one, other } = nodes);
  watches = await Promise.all(redis.url.split(',').map(watchLookUps));
});

afterAll(async () => {
  for (const watch of watches) watch.disconnect();
  await nodes?.stop();
});

afterEach(async () => {
  await eventStore.resume();
  await redis.resume();
  if (!one.alive()) await one.start();
  await one.ready();
});

/** @param url of one server */
async function watchLookUps(url: string): Promise<Redis> {
  const client = new Redis(url);
  const watch = await client.monitor();
  client.disconnect();
  watch.on('monitor', (_time, words: string[]) => {
    if (words.some((word) => word.startsWith('parley_lookup_'))) lookUps += 1;
  });
  return watch;
}

/** Keys of the records of idempotency keys that a request holds with a lease. */
async function leased(): Promise<string[]> {
  const names = await redis.command('KEYS', 'parley:idempotency:*');
  const found: string[] = [];
  for (const name of Array.isArray(names) ? names.map(String) : []) {
    if ((await redis.command('HGET', name, 'lease')) !== null) found.push(name);
  }
  return found;
}

/** The lease of a dead gateway expires after three seconds; here, at once. */
async function endLeases(): Promise<void> {
  for (const name of await leased()) await redis.command('HSET', name, 'lease_until', '0');
}

const eventsOf = (id: string) => readLog(eventStore.url, `channel-${id}`);

const eventsUnder = async (key: string) =>
  (await readLog(eventStore.url, 'channel-')).filter(({ metadata }) => metadata['idempotencyKey'] === key);

interface Doomed {
  send(api: ApiClient): Promise<Reply>;
  /** Whether only the append is left to be done. */
  isAppending(): Promise<boolean>;
  isInLog(): Promise<boolean>;
}

/** @param queries of the decision to Redis, before the append */
function doomed(key: string, queries: number, send: Doomed['send']): Doomed {
  const before = lookUps;
  return {
    send,
    isAppending: async () => (await leased()).length === 1 && lookUps >= before + queries,
    isInLog: async () => (await eventsUnder(key)).length > 0,
  };
}

/**
 * Sends to the first gateway, and kills it when the event is in the log and the answer cannot go out: while the event
 * store is frozen, the request does everything before the append, and Redis is frozen before the append gets through.
 */
async function dieBeforeAnswering({ send, isAppending, isInLog }: Doomed): Promise<string> {
  let last = '';
  // On a slow machine the request may be answered 503 before this test has seen it; then it is sent again.
  for (let attempt = 0; attempt < 5; attempt++) {
    await eventStore.pause();
    let answer: string | undefined;
    const answered = send(one.api).then(
      ({ status, text }) => (answer = `${status} ${text}`),
      () => (answer = 'no answer'),
    );
    await eventually(async () => answer !== undefined || (await isAppending()));
    await redis.pause();
    await eventStore.resume();
    await eventually(async () => answer !== undefined || (await isInLog()));
    if (answer === undefined) await one.kill9();
    await redis.resume();
    last = await answered;
    if (!last.startsWith('503')) return last;
    await endLeases();
  }
  throw new Error(`the gateway could not be killed between append and answer: ${last}`);
}

/**
 * @param mayBeStored the answer is sent to Redis together with the event: Redis may have got both before the gateway died
 * @returns the answer of the other gateway, once it may run the command
 */
async function retryElsewhere(send: Doomed['send'], { mayBeStored = false } = {}): Promise<Reply> {
  let retried = await send(other.api);
  // Unless the lease has expired meanwhile.
  if (retried.status === 409) {
    await endLeases();
    retried = await send(other.api);
  }
  expect(retried.status).toBe(200);
  expect(mayBeStored ? undefined : retried.headers['idempotency-replayed']).toBeUndefined();

  const replayed = await send(other.api);
  expect(replayed).toMatchObject({ status: 200, text: retried.text });
  const { etag, 'parley-position': position } = retried.headers;
  expect(replayed.headers).toMatchObject({ 'idempotency-replayed': 'true', 'parley-position': position });
  expect(replayed.headers.etag).toBe(etag);
  return retried;
}

let names = 0;

/** With a key, so that the next command finds the newest commands in the gateway's memory. */
async function sendOk(api: ApiClient, path: string, body: object): Promise<Record<string, unknown>> {
  const reply = await api.post(path, body, { headers: { 'idempotency-key': `fixture-${++names}` } });
  expect(reply.status).toBe(200);
  return asRecord(reply.json());
}

const createChannel = async () =>
  String((await sendOk(one.api, '/api/v1/channels', { name: `name ${++names}`, participants: [] }))['id']);

/** Each case restarts a gateway: one of each kind runs here, the others in campaigns. */
const OF_EACH_KIND = new Set(['create', 'post', 'append', 'reaction']);
const inThisRun = <C extends { readonly command: string }>(cases: readonly C[]): C[] =>
  cases.filter(({ command }) => IN_CAMPAIGN || OF_EACH_KIND.has(command));

describe('a command on a channel, when the gateway dies before it answers', () => {
  const participant = { type: 'external_agent', agent_metadata: { tag: 'once' } };
  const cases = [
    { command: 'create', method: 'POST', path: () => '/api/v1/channels', body: { name: 'once', participants: [] } },
    { command: 'rename', method: 'PATCH', path: (id: string) => `/api/v1/channels/${id}`, body: { name: 'once' } },
    { command: 'add', method: 'POST', path: (id: string) => `/api/v1/channels/${id}/participants`, body: participant },
    { command: 'archive', method: 'POST', path: (id: string) => `/api/v1/channels/${id}/archive`, body: undefined },
  ];

  it.each(inThisRun(cases))(
    'leaves one event of a $command, and the retry at another gateway gets the same answer',
    async ({ command, method, path, body }) => {
      const id = await createChannel();
      const key = `died-${command}`;
      const send = (api: ApiClient) => api.request(method, path(id), { body, headers: { 'idempotency-key': key } });
      expect(await dieBeforeAnswering(doomed(key, 0, send))).toBe('no answer');
      const retried = await retryElsewhere(send);

      // Channels in their first states: the written state is the one that would have been answered.
      const [event, ...more] = await eventsUnder(key);
      expect(more).toEqual([]);
      const { channelId, revision, body: channel } = answerOf(retried);
      expect(event).toMatchObject({ stream: `channel-${channelId}`, revision });
      expect(channel['modified']).toBe(event?.metadata['at']);
      const read = await other.api.get(`/api/v1/channels/${channelId}`);
      expect(read.text).toBe(retried.text);
    },
  );

  it('does not undo later writes of others', async () => {
    const id = await createChannel();
    const headers = { 'idempotency-key': 'died-and-overtaken' };
    const send = (api: ApiClient) => api.patch(`/api/v1/channels/${id}`, { name: 'once' }, { headers });
    expect(await dieBeforeAnswering(doomed('died-and-overtaken', 0, send))).toBe('no answer');
    expect((await other.api.patch(`/api/v1/channels/${id}`, { name: 'later' })).status).toBe(200);
    await endLeases();
    expect((await send(other.api)).json()).toMatchObject({ name: 'later' });
    expect((await eventsOf(id)).map(({ data }) => data['name'])).toEqual([expect.any(String), 'once', 'later']);
  });
});

describe('a command on an interaction, when the gateway dies before it answers', () => {
  const text = (words: string) => ({ content: [{ type: 'text', text: words }] });

  async function startInteraction() {
    const channelId = await createChannel();
    const interactions = `/api/v1/channels/${channelId}/interactions`;
    const user = { type: 'non_authenticated_user', user_metadata: {} };
    const target = await sendOk(one.api, interactions, { ...text('first'), participant: user, complete: false });
    return { channelId, interactions, target };
  }

  const cases = [
    { command: 'post', type: 'InteractionPosted.v1', path: null, body: text('once') },
    // Below an existing interaction, so that the parent has to be looked up.
    { command: 'start', type: 'InteractionPosted.v1', path: null, body: { ...text('once'), complete: false } },
    { command: 'append', type: 'InteractionContentAppended.v1', path: '/content', body: text('once') },
    { command: 'complete', type: 'InteractionCompleted.v2', path: '/complete', body: text('once, in place of all') },
    { command: 'fail', type: 'InteractionFailed.v1', path: '/fail', body: { reason: 'once' } },
    { command: 'receipt', type: 'ReadReceiptRecorded.v1', path: '/read_receipts', body: { agent_id: 'agent-1' } },
  ];

  it.each(inThisRun(cases))(
    'leaves one event of a $command, and the retry at another gateway gets the same answer',
    async ({ command, type, path, body }) => {
      const { channelId, interactions, target } = await startInteraction();
      const key = `died-on-interaction-${command}`;
      const parent = command === 'start' ? { parent_span_id: target['span_id'] } : {};
      const request = { body: { ...body, ...parent }, headers: { 'idempotency-key': key } };
      const url = path === null ? interactions : `/api/v1/interactions/${String(target['id'])}${path}`;
      const send = (api: ApiClient) => api.request('POST', url, request);
      // The span of a post is looked up in the call that takes the idempotency key.
      expect(await dieBeforeAnswering(doomed(key, command === 'post' ? 0 : 1, send))).toBe('no answer');
      const retried = await retryElsewhere(send, { mayBeStored: path === null });

      const [event, ...more] = await eventsUnder(key);
      expect(more).toEqual([]);
      expect(event).toMatchObject({ type, stream: `channel-${channelId}`, revision: 2 });
      expect(await eventsOf(channelId)).toHaveLength(3);

      const { id, ...answered } = asRecord(retried.json());
      const read = await other.api.get(`/api/v1/interactions/${String(id)}?include_incomplete=true`);
      expect(read.text).toBe(retried.text);
      const folded = foldInteractions(channelId, await eventsOf(channelId)).get(Number(answered['sequence']));
      const receipt = { agent_id: 'agent-1', read_at: event?.metadata['at'] };
      const receipts = command === 'receipt' ? [receipt] : null;
      expect(answered).toMatchObject({ ...folded, agent_read_receipts: receipts });
    },
  );

  const reactions = [
    { command: 'reaction', type: 'ReactionAdded.v1', count: 2 },
    { command: 'withdrawal', type: 'ReactionRemoved.v1', count: 1 },
  ];

  it.each(inThisRun(reactions))(
    'leaves one event of a $command, which is repeatable without a key',
    async ({ command, type, count }) => {
      const { channelId, target } = await startInteraction();
      const url = `/api/v1/interactions/${String(target['id'])}/reactions/${encodeURIComponent('👍')}`;
      const react = (api: ApiClient, agent: string) => api.request('PUT', url, { body: { agent_id: agent } });
      const reacted = command === 'reaction' ? ['agent-1'] : ['agent-1', 'agent-2'];
      for (const agent of reacted) expect((await react(one.api, agent)).status).toBe(200);
      const send = (api: ApiClient) =>
        command === 'reaction' ? react(api, 'agent-2') : api.request('DELETE', `${url}?agent_id=agent-2`);
      const before = lookUps;
      const newest = async () => (await eventsOf(channelId)).at(-1)?.type;
      const isAppending = async () => lookUps > before;
      const isInLog = async () => (await newest()) === type;
      expect(await dieBeforeAnswering({ send, isAppending, isInLog })).toBe('no answer');

      const retried = await send(other.api);
      expect(retried.status).toBe(200);
      expect(retried.json()).toMatchObject({ reactions: [{ emoji: '👍', count }] });
      expect((await send(other.api)).text).toBe(retried.text);
      const events = await eventsOf(channelId);
      expect(events.filter((event) => event.type === type)).toHaveLength(command === 'reaction' ? 2 : 1);
      expect(await newest()).toBe(type);
    },
  );
});

describe('a command that was written while its answer cannot be read', () => {
  const cases = [
    { command: 'reaction', method: 'PUT', path: '/reactions/%F0%9F%91%8D', type: 'ReactionAdded.v1' },
    { command: 'receipt', method: 'POST', path: '/read_receipts', type: 'ReadReceiptRecorded.v1' },
  ];

  it.each(inThisRun(cases))(
    'is answered 503 for a $command, which leaves the outcome open',
    async ({ method, path, type }) => {
      const channelId = await createChannel();
      const participant = { type: 'non_authenticated_user', user_metadata: {} };
      const content = [{ type: 'text', text: 'first' }];
      const isInLog = async () => (await eventsOf(channelId)).some((event) => event.type === type);
      // A slow machine may answer before Redis is frozen, with the state that it read or that nothing was written.
      for (let attempt = 1; ; attempt++) {
        // Leaves the channel in the gateway's memory, which a failed command does not: it cannot be read meanwhile.
        const posted = await sendOk(one.api, `/api/v1/channels/${channelId}/interactions`, { content, participant });
        const before = lookUps;
        const body = { agent_id: `agent-${attempt}` };
        eventStore.pause();
        let answer: Reply | undefined;
        const answered = one.api.request(method, `/api/v1/interactions/${String(posted['id'])}${path}`, { body });
        void answered.then((reply) => (answer = reply));
        await eventually(() => answer !== undefined || lookUps > before);
        redis.pause();
        eventStore.resume();
        const reply = await answered;
        redis.resume();
        if (!(await isInLog()) || reply.status === 200) {
          if (attempt === 5)
            throw new Error(`it was not written before it was answered: ${reply.status} ${reply.text}`);
          continue;
        }
        expect(reply).toMatchObject({ status: 503 });
        expect(asRecord(reply.json())['code']).toBe('outcome_unknown');
        return;
      }
    },
  );
});
