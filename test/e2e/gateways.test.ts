/* Two gateways on the same stores: what one acknowledged holds for the other, also when the one is dead. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, Reply } from '#test/support/api-client.ts';
import { answerOf, startChannelLoad } from '#test/support/channel-load.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { problemsOf } from '#test/support/history-checker.ts';
import { readLog } from '#test/support/log-reader.ts';
import { observe } from '#test/support/observation.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let eventStore: TestEventStoreProcess;
let redis: TestRedis;
let one: ParleyProcess;
let other: ParleyProcess;

beforeAll(async () => {
  [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
  one = await startParleyProcess(stores);
  // Gateway only: whatever it reads, it or the other one has applied.
  other = await startParleyProcess({ ...stores, apiKey: one.apiKey, env: { ROLES: 'gateway' } });
  await Promise.all([one.ready(), other.ready()]);
}, 60_000);

afterAll(async () => {
  await Promise.all([one?.stop(), other?.stop()]);
  await Promise.all([eventStore?.stop(), redis?.stop()]);
}, 40_000);

let names = 0;
const newName = (): string => `name ${++names}`;

async function createChannel(api: ApiClient = one.api): Promise<string> {
  return answerOf(await api.post('/api/v1/channels', { name: newName(), participants: [] })).channelId;
}

const eventsOf = (id: string) => readLog(eventStore.url, `channel-${id}`);

describe('two gateways', () => {
  it('keep every write to a hot channel once, in one order that both show', async () => {
    const load = startChannelLoad({ clients: [one.api, other.api], writers: 12, seed: 7, thinkMs: 0 });
    await eventually(() => load.acknowledged() > 600, { timeoutMs: 60_000 });
    await load.stop(5_000);
    const { operations } = load;
    for (const api of [one.api, other.api]) {
      const observation = await observe(operations, { eventstoreUrl: eventStore.url, api: one.api, readWith: api });
      expect(problemsOf(observation)).toEqual([]);
    }
    const refused = operations.flatMap(({ attempts }) => attempts).filter(({ outcome }) => outcome !== 'acknowledged');
    expect(refused.map(({ detail }) => detail).filter((detail) => detail !== '409 conflict')).toEqual([]);
  }, 120_000);

  it('show each other’s writes to who brings the position along', async () => {
    const id = await createChannel();
    for (let n = 0; n < 100; n++) {
      const [writer, reader] = n % 2 === 0 ? [one, other] : [other, one];
      const name = newName();
      const written = await writer.api.patch(`/api/v1/channels/${id}`, { name });
      const position = written.headers['parley-position'];
      const read = await reader.api.get(`/api/v1/channels/${id}`, { headers: { 'parley-position': position } });
      expect(read.json()).toMatchObject({ name });
    }
  });

  it('decide If-Match on the same truth: of many with one ETag, exactly one gets through', async () => {
    const id = await createChannel();
    const etag = (await one.api.get(`/api/v1/channels/${id}`)).headers.etag ?? '';
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        [one, other][n % 2]?.api.patch(
          `/api/v1/channels/${id}`,
          { name: newName() },
          { headers: { 'if-match': etag } },
        ),
      ),
    );
    const statuses = replies.map((reply) => reply?.status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 412)).toHaveLength(19);
    expect(await eventsOf(id)).toHaveLength(2);
  });

  it('run one of many concurrent requests with the same idempotency key', async () => {
    const headers = { 'idempotency-key': `concurrent-${newName().replace(' ', '-')}` };
    const send = (n: number) =>
      (n % 2 ? one : other).api.post('/api/v1/channels', { name: 'once', participants: [] }, { headers });
    const replies = await Promise.all(Array.from({ length: 10 }, (_, n) => send(n)));
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200, 409]));
    const final = await send(0);
    const answers = [...replies, final].filter(({ status }) => status === 200).map(({ text }) => text);
    expect(new Set(answers).size).toBe(1);
    expect(await eventsOf(answerOf(final).channelId)).toHaveLength(1);
  });
});

describe('a gateway that dies between append and answer', () => {
  afterEach(async () => {
    eventStore.resume();
    redis.resume();
    if (!one.alive()) await one.start();
    await one.ready();
  });

  /** Keys that a request holds: the records of the idempotency keys with a lease. */
  async function leased(): Promise<string[]> {
    const names = await redis.command('KEYS', 'parley:idempotency:*');
    const found: string[] = [];
    for (const name of Array.isArray(names) ? names.map(String) : []) {
      if ((await redis.command('HGET', name, 'lease')) !== null) found.push(name);
    }
    return found;
  }

  const eventsUnder = async (key: string) =>
    (await readLog(eventStore.url, 'channel-')).filter(({ metadata }) => metadata['idempotencyKey'] === key);

  /**
   * Sends to the first gateway, and kills it when the event is in the log and the answer cannot go out: while
   * the event store is silent the request takes its key, and Redis is silent before the append gets through.
   */
  async function dieBeforeAnswering(key: string, send: (api: ApiClient) => Promise<Reply>): Promise<string> {
    // On a slow machine the request may be answered 503 before this test has seen it; then it is sent again.
    for (let attempt = 0; attempt < 5; attempt++) {
      eventStore.pause();
      let answer: string | undefined;
      const answered = send(one.api).then(
        ({ status, text }) => (answer = `${status} ${text}`),
        () => (answer = 'no answer'),
      );
      await eventually(async () => answer !== undefined || (await leased()).length === 1);
      redis.pause();
      eventStore.resume();
      await eventually(async () => answer !== undefined || (await eventsUnder(key)).length > 0);
      if (answer === undefined) await one.kill9();
      redis.resume();
      await answered;
      if (answer?.startsWith('503') !== true) return answered;
    }
    throw new Error('the gateway could not be killed between append and answer');
  }

  /** The lease of a dead gateway ends after half a minute; here, at once. */
  async function endLeases(): Promise<void> {
    for (const name of await leased()) await redis.command('HSET', name, 'lease_until', '0');
  }

  const participant = { type: 'external_agent', agent_metadata: { tag: 'once' } };
  const cases = [
    { command: 'create', method: 'POST', path: () => '/api/v1/channels', body: { name: 'once', participants: [] } },
    { command: 'rename', method: 'PATCH', path: (id: string) => `/api/v1/channels/${id}`, body: { name: 'once' } },
    { command: 'add', method: 'POST', path: (id: string) => `/api/v1/channels/${id}/participants`, body: participant },
    { command: 'archive', method: 'POST', path: (id: string) => `/api/v1/channels/${id}/archive`, body: undefined },
  ];

  it.each(cases)(
    'leaves one event of a $command, and the retry elsewhere has the same answer',
    async ({ command, method, path, body }) => {
      const id = await createChannel();
      const key = `died-${command}`;
      const send = (api: ApiClient) => api.request(method, path(id), { body, headers: { 'idempotency-key': key } });
      expect(await dieBeforeAnswering(key, send)).toBe('no answer');

      const tooEarly = await send(other.api);
      expect(tooEarly.status).toBe(409);
      expect(Number(tooEarly.headers['retry-after'])).toBeGreaterThan(0);
      await endLeases();
      const retried = await send(other.api);
      expect(retried.status).toBe(200);
      expect(retried.headers['idempotency-replayed']).toBeUndefined();

      // Channels in their first states: what was written is what would have been answered.
      const [event, ...more] = await eventsUnder(key);
      expect(more).toEqual([]);
      const { channelId, revision, body: channel } = answerOf(retried);
      expect(event).toMatchObject({ stream: `channel-${channelId}`, revision });
      expect(channel['modified']).toBe(event?.metadata['at']);
      const read = await other.api.get(`/api/v1/channels/${channelId}`);
      expect(read.text).toBe(retried.text);

      const replayed = await send(other.api);
      expect(replayed).toMatchObject({ status: 200, text: retried.text });
      expect(replayed.headers).toMatchObject({ 'idempotency-replayed': 'true', etag: retried.headers.etag });
    },
  );

  it('does not undo what others have written since', async () => {
    const id = await createChannel();
    const headers = { 'idempotency-key': 'died-and-overtaken' };
    const send = (api: ApiClient) => api.patch(`/api/v1/channels/${id}`, { name: 'once' }, { headers });
    expect(await dieBeforeAnswering('died-and-overtaken', send)).toBe('no answer');
    expect((await other.api.patch(`/api/v1/channels/${id}`, { name: 'later' })).status).toBe(200);
    await endLeases();
    expect((await send(other.api)).json()).toMatchObject({ name: 'later' });
    expect((await eventsOf(id)).map(({ data }) => data['name'])).toEqual([expect.any(String), 'once', 'later']);
  });
});
