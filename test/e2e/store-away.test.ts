/*
 * A store is down, frozen, full or read-only, and comes back: which answers Parley gives meanwhile, and that it recovers
 * without a restart and loses no acknowledged write. Answers must come while the store is away; that they come within five
 * seconds is not asserted, because a busy machine is slower.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Reply } from '#test/support/api-client.ts';
import { answerOf } from '#test/support/channel-load.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord, readLog } from '#test/support/log-reader.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let eventStore: TestEventStoreProcess;
let redis: TestRedis;
/** In the process of the test, until a process shows how Parley starts without a store. */
let parley: ParleyHere | ParleyProcess;

beforeAll(async () => {
  [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  parley = await startParleyHere({ EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url });
});

afterAll(async () => {
  try {
    await parley?.stop();
  } finally {
    await Promise.all([eventStore?.stop(), redis?.stop()]);
  }
});

let names = 0;
const newName = (): string => `name ${++names}`;

async function createChannel(): Promise<string> {
  const reply = await parley.api.post('/api/v1/channels', { name: newName(), participants: [] });
  expect(reply.status).toBe(200);
  return answerOf(reply).channelId;
}

const rename = (id: string, name: string, headers: Record<string, string> = {}): Promise<Reply> =>
  parley.api.patch(`/api/v1/channels/${id}`, { name }, { headers });
const read = (id: string): Promise<Reply> => parley.api.get(`/api/v1/channels/${id}`);

/** What a caller sees of an answer: 503, Retry-After and the code. */
function verdictOn(reply: Reply): object {
  const { detail, code } = asRecord(reply.json());
  return {
    status: reply.status,
    saysWhen: Number(reply.headers['retry-after']) > 0,
    saysWhy: typeof detail === 'string' && typeof code === 'string',
  };
}
const UNAVAILABLE = { status: 503, saysWhen: true, saysWhy: true };

/** Status and text, so that a failed check shows the answer. */
const shown = ({ status, text }: Reply): object => ({ status, text });
const OK = { status: 200 };

const LAGGING = ['projection', 'read_model'];

async function readiness(): Promise<{ status: number; down: string[] }> {
  const { status, json } = await parley.api.get('/health/ready');
  const checks = Object.entries(asRecord(asRecord(json())['checks']));
  return { status, down: checks.filter(([, check]) => asRecord(check)['status'] !== 'ok').map(([name]) => name) };
}

/** Both servers write and are read again: no process had to be restarted. */
async function expectRecovery(id: string): Promise<void> {
  const name = newName();
  await eventually(async () => (await rename(id, name)).status === 200);
  await eventually(async () => {
    const reply = await read(id);
    expect(shown(reply)).toMatchObject(OK);
    expect(reply.json()).toMatchObject({ name });
  });
  await eventually(async () => expect(await readiness()).toEqual({ status: 200, down: [] }));
}

/** Names of a channel in the log, oldest first. */
async function namesInLog(id: string): Promise<unknown[]> {
  return (await readLog(eventStore.url, `channel-${id}`)).map(({ data }) => data['name']);
}

describe.each([
  { state: 'down', fail: () => eventStore.kill9(), mend: () => eventStore.restart() },
  { state: 'silent', fail: () => eventStore.pause(), mend: () => eventStore.resume() },
])('while the event store is $state', ({ fail, mend }) => {
  let warm: string;
  let cold: string;
  let first: unknown;

  beforeAll(async () => {
    cold = await createChannel();
    warm = await createChannel();
    first = (await read(warm)).json();
    await fail();
  });

  it('commands answer 503 with Retry-After, all kinds and many at a time', async () => {
    const create = () => parley.api.post('/api/v1/channels', { name: newName(), participants: [] });
    const replies = await Promise.all([
      rename(warm, newName()),
      rename(cold, newName()),
      rename(warm, newName(), { 'idempotency-key': `key-of-${warm}` }),
      parley.api.post(`/api/v1/channels/${warm}/participants`, { type: 'external_agent' }),
      parley.api.post(`/api/v1/channels/${cold}/archive`),
      ...Array.from({ length: 20 }, create),
    ]);
    expect(replies.map(verdictOn)).toEqual(replies.map(() => UNAVAILABLE));
  });

  it('reads still work', async () => {
    const replies = await Promise.all([read(warm), read(cold), parley.api.get('/api/v1/channels?size=2')]);
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(replies[0].json()).toEqual(first);
    expect((await read('01900000-0000-7000-8000-000000000000')).status).toBe(404);
  });

  it('readiness names it, liveness does not change', async () => {
    await eventually(async () => expect((await readiness()).down).toContain('event_store'));
    const { status, down } = await readiness();
    expect(status).toBe(503);
    expect(down).not.toContain('redis');
    expect((await parley.api.get('/health/live')).status).toBe(200);
  });

  it('recovery needs no restart, and the log has all acknowledged writes, and each request at most once', async () => {
    await mend();
    await expectRecovery(warm);
    await expectRecovery(cold);
    const [created, ...renamed] = await namesInLog(warm);
    expect(created).toBe(asRecord(first)['name']);
    expect(renamed.at(-1)).toBe(asRecord((await read(warm)).json())['name']);
    // Each name was sent once: refused requests may have been written, but not twice.
    expect(new Set(renamed).size).toBe(renamed.length);
  });
});

describe.each([
  { state: 'down', fail: () => redis.kill9(), mend: () => redis.restart() },
  { state: 'silent', fail: () => redis.pause(), mend: () => redis.resume() },
])('while Redis is $state', ({ fail, mend }) => {
  let id: string;
  let acknowledged: string[];

  beforeAll(async () => {
    id = await createChannel();
    acknowledged = [];
    await fail();
  });

  it('commands that need no read model append', async () => {
    for (let n = 0; n < 3; n++) {
      const name = newName();
      const reply = await rename(id, name);
      expect(shown(reply)).toMatchObject(OK);
      expect(reply.json()).toMatchObject({ id, name });
      acknowledged.push(name);
    }
    const [name, headers] = [newName(), { 'idempotency-key': `key-of-${id}` }];
    for (const reply of [await rename(id, name, headers), await rename(id, name, headers)]) {
      expect(shown(reply)).toMatchObject(OK);
    }
    acknowledged.push(name);
    expect(await namesInLog(id)).toEqual([expect.any(String), ...acknowledged]);
  });

  it('requests that need it answer 503 with Retry-After', async () => {
    const replies = await Promise.all([
      read(id),
      parley.api.get('/api/v1/channels'),
      parley.api.get(`/api/v1/channels/${id}/interactions`),
    ]);
    expect(replies.map(verdictOn)).toEqual(replies.map(() => UNAVAILABLE));
  });

  it('readiness names it', async () => {
    await eventually(async () => expect((await readiness()).down).toContain('redis'));
    expect((await readiness()).down).not.toContain('event_store');
  });

  it('recovery needs no restart, and reads catch up', async () => {
    await mend();
    await eventually(async () => expect((await read(id)).json()).toMatchObject({ name: acknowledged.at(-1) }));
    await expectRecovery(id);
  });
});

describe.each([
  {
    state: 'out of memory',
    fail: () => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
    mend: () => redis.command('CONFIG', 'SET', 'maxmemory', '0'),
  },
  process.env['PARLEY_TEST_REDIS'] === 'cluster'
    ? {
        state: 'a cluster whose nodes refuse writes for want of replicas',
        fail: () => redis.command('CONFIG', 'SET', 'min-replicas-to-write', '1'),
        mend: () => redis.command('CONFIG', 'SET', 'min-replicas-to-write', '0'),
      }
    : {
        state: 'read-only',
        // Replica of a port on which nothing listens: it serves reads of its data and refuses writes.
        fail: () => redis.command('REPLICAOF', '127.0.0.1', '1'),
        mend: () => redis.command('REPLICAOF', 'NO', 'ONE'),
      },
])('while Redis is $state', ({ fail, mend }) => {
  let id: string;
  let untouched: string;
  const acknowledged: string[] = [];

  beforeAll(async () => {
    id = await createChannel();
    untouched = await createChannel();
    await fail();
  });

  it('commands append; reads show the data of Redis, and answer 503 where it is out of date', async () => {
    const other = (await read(untouched)).json();
    const name = newName();
    const reply = await rename(id, name);
    expect(shown(reply)).toMatchObject(OK);
    acknowledged.push(name);
    const created = await parley.api.post('/api/v1/channels', { name, participants: [] });
    expect(shown(created)).toMatchObject(OK);
    for (const changed of [id, answerOf(created).channelId])
      expect(verdictOn(await read(changed))).toEqual(UNAVAILABLE);
    expect((await read(untouched)).json()).toEqual(other);
    const position = reply.headers['parley-position'];
    const late = await parley.api.get(`/api/v1/channels/${id}`, { headers: { 'parley-position': position } });
    expect(verdictOn(late)).toEqual(UNAVAILABLE);
  });

  it('readiness says that the projection waits, and that reads lag', async () => {
    await eventually(async () => expect((await readiness()).down).toEqual(expect.arrayContaining(LAGGING)));
  });

  it('the projector catches up by itself afterwards', async () => {
    await mend();
    await eventually(async () => expect((await read(id)).json()).toMatchObject({ name: acknowledged.at(-1) }));
    expect(await namesInLog(id)).toEqual([expect.any(String), ...acknowledged]);
    await expectRecovery(id);
  });
});

describe('at boot, and after it', () => {
  let started: ParleyProcess;
  let warm: string;
  let cold: string;

  it('a Parley whose Redis is down starts, reports that, and is ready when Redis is', async () => {
    await parley.stop();
    await redis.kill9();
    const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
    parley = started = await startParleyProcess({ ...stores, apiKey: parley.apiKey });
    const create = () => parley.api.post('/api/v1/channels', { name: newName(), participants: [] });
    // A server with health alone answers 503 while Parley waits for Redis, and closes before the other one listens.
    const refused: Reply[] = [];
    const created = await eventually(async () => {
      const reply = await create();
      if (reply.status === 200) return reply;
      refused.push(reply);
      throw new Error(`status ${reply.status}`);
    });
    expect(refused.map(verdictOn)).toEqual(refused.map(() => UNAVAILABLE));
    expect(verdictOn(await read(answerOf(created).channelId))).toEqual(UNAVAILABLE);
    expect((await readiness()).down).toContain('redis');
    await redis.restart();
    await expectRecovery(answerOf(created).channelId);
  });

  it('a Parley whose event store is down waits for it without a busy loop, and starts with it', async () => {
    [warm, cold] = [await createChannel(), await createChannel()];
    await eventStore.kill9();
    await started.kill9();
    const printed = started.output().length;
    await started.start({ wait: false });
    await eventually(() => started.output().slice(printed).includes('waiting for the event store'));
    expect(started.alive()).toBe(true);
    await eventStore.restart();
    await eventually(async () => (await parley.api.get('/health/live')).status === 200);
    await expectRecovery(warm);
    const waits = started.output().slice(printed).split('waiting for the event store').length - 1;
    expect(waits).toBeLessThan(20);
  });

  // After a start, which has left only one of the two channels in memory.
  it('commands and reads answer 503 while both stores are frozen, and nothing is lost when they are back', async () => {
    const name = newName();
    expect((await rename(warm, name)).status).toBe(200);
    await eventStore.pause();
    await redis.pause();
    const replies = await Promise.all([rename(warm, newName()), rename(cold, newName()), read(warm)]);
    expect(replies.map(verdictOn)).toEqual(replies.map(() => UNAVAILABLE));
    await eventStore.resume();
    await redis.resume();
    await expectRecovery(warm);
    await expectRecovery(cold);
    expect(await namesInLog(warm)).toContain(name);
    expect(started.alive()).toBe(true);
  });
});
