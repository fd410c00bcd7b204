/* A log that lacks events of the read models must be detected before anything is served from them, or written. */
import { cp, mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { findRunning } from '#infra/data-folder/index.ts';
import { ALL_PROJECTION_KEYS, CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { createApiKey } from '#libs/platform/http/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { startParley } from '#services/testing/index.ts';
import { runParley } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestEventStore, type TestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { readLog } from '#test/support/log-reader.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { startParleyProcess, type ParleyProcess, type ParleyProcessOptions } from '#test/support/parley-process.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

const LOST_LOG =
  'the log lacks events that the read models hold: event \\d+ of \\S+ \\(position \\d+/\\d+\\) is not in it';
/** Of a process. */
const REFUSAL = new RegExp(`parley: ${LOST_LOG}`);
const CHOICES = /older backup .* then .*`npx parley rebuild --accept-lost-events`/;

const made = z.object({ id: z.string() });
const apiKey = createApiKey();

let folder: string;
/** Of the Parley whose log is lost. */
let dataDir: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-lost-log-'));
  dataDir = join(folder, 'data');
  const parley = await start();
  await createChannel(parley, 'Before the backup');
  expect(await command(['backup', join(folder, 'backup')])).toMatch(/log_check +passed/);
  await createChannel(parley, 'After the backup');
  await parley.stop();
  await cp(eventStoreFolder(), newest(), { recursive: true });
}, 120_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Ended after each test, also one that has failed. */
const started: { stop(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const parley of started.splice(0)) await parley.stop();
});

async function start(): Promise<ParleyHere> {
  const parley = await startParleyHere({ DATA_DIR: dataDir, PARLEY_BOOTSTRAP_KEY: apiKey });
  started.push(parley);
  return parley;
}

async function startProcess(options: ParleyProcessOptions): Promise<ParleyProcess> {
  const parley = await startParleyProcess({ apiKey, ...options });
  started.push(parley);
  return parley;
}

const eventStoreFolder = (): string => join(dataDir, 'eventstore');
const older = (): string => join(folder, 'backup/eventstore');
const newest = (): string => join(folder, 'newest');

/** Resolves when the read models hold the channel, and a projector has saved its checkpoint. */
async function createChannel({ api }: ParleyHere, name: string): Promise<string> {
  const { id } = made.parse((await api.post('/api/v1/channels', { name })).json());
  const running = await findRunning(dataDir);
  const redis = new Redis(running?.redisUrl ?? '');
  await eventually(async () => (await redis.get(CHANNEL_PROJECTION_KEYS.witness))?.includes(id) === true);
  redis.disconnect();
  return id;
}

async function putLog(from: string): Promise<void> {
  await rm(eventStoreFolder(), { recursive: true });
  await cp(from, eventStoreFolder(), { recursive: true });
}

async function command(args: string[], variables: Record<string, string> = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await runParley({ DATA_DIR: dataDir, ...variables }, ...args);
  return exitCode === 0 ? stdout : stderr;
}

it('refuses to start when it is an older backup: the process names the choices and ends', async () => {
  await putLog(older());
  const refused = await startProcess({ env: { DATA_DIR: dataDir }, wait: false });
  expect(await refused.ended()).toBe(1);
  expect(refused.output()).toMatch(REFUSAL);
  expect(refused.output()).toMatch(CHOICES);
}, 120_000);

it.each<[what: string, lose: () => Promise<void>]>([
  ['the folder of the event store is gone', () => rm(eventStoreFolder(), { recursive: true })],
  ['its file is empty', () => truncate(join(eventStoreFolder(), 'events.mdb'), 0)],
  [
    'it is the longer log of another Parley',
    async () => {
      const otherDir = join(folder, 'other');
      const other = await startParley({ settings: { DATA_DIR: otherDir } });
      for (let i = 0; i < 5; i++) await other.createChannel({ name: 'Another' });
      await other.stop();
      await putLog(join(otherDir, 'eventstore'));
    },
  ],
])(
  'refuses to start when %s, and names the choices',
  async (_what, lose) => {
    await lose();
    const message = String(await start().catch((error: unknown) => error));
    expect(message).toMatch(new RegExp(`^Error: Parley cannot start: ${LOST_LOG}`));
    expect(message).toMatch(CHOICES);
  },
  120_000,
);

it('starts on the restored log', async () => {
  await putLog(newest());
  const parley = await start();
  expect((await parley.api.get('/api/v1/channels')).text).toContain('After the backup');
}, 120_000);

it('is not backed up unless the read models cannot be queried, which the backup then reports', async () => {
  await putLog(older());
  expect(await command(['backup', join(folder, 'refused')])).toMatch(REFUSAL);
  const withoutRedis = await command(['backup', join(folder, 'unchecked')], { REDIS_URL: 'redis://127.0.0.1:1' });
  expect(withoutRedis).toMatch(/log_check +skipped: Redis is unavailable/);
}, 120_000);

it('drops the lost events from the read models only with --accept-lost-events', async () => {
  await putLog(older());
  expect(await command(['rebuild'])).toMatch(REFUSAL);
  expect(await command(['rebuild', '--accept-lost-events'])).toMatch(/events +\d/);
  const parley = await start();
  const channels = (await parley.api.get('/api/v1/channels')).text;
  expect(channels).toContain('Before the backup');
  expect(channels).not.toContain('After the backup');
  await createChannel(parley, 'After the loss');
}, 120_000);

describe('the read models of another event store', () => {
  let redis: TestRedis;
  let eventStores: readonly TestEventStore[] = [];
  /** Has no events. */
  let empty: TestEventStore;
  /** Has more events than the store of the read models. */
  let longer: TestEventStoreProcess;
  let witness: string | null;

  beforeAll(async () => {
    const [own, none, more] = await Promise.all([
      startTestEventStore(),
      startTestEventStore(),
      startTestEventStore({ mode: 'process' }),
    ]);
    eventStores = [own, none, more];
    [empty, longer] = [none, more];
    const [ofOwn, ofLonger] = await Promise.all([startTestRedis(), startTestRedis()]);
    redis = ofOwn;
    await Promise.all([fill(own.url, redis.url, 0), fill(more.url, ofLonger.url, 10)]);
    await ofLonger.stop();
    witness = await witnessIn(redis.url);
  }, 240_000);
  afterAll(async () => {
    await Promise.all([redis, ...eventStores].map((store) => store?.stop()));
  });

  /** Adds channels, and projects the log until the read models hold a witness of it. */
  async function fill(eventstoreUrl: string, redisUrl: string, channels: number): Promise<void> {
    const stores = { EVENTSTORE_URL: eventstoreUrl, REDIS_URL: redisUrl, PARLEY_BOOTSTRAP_KEY: apiKey };
    const filling = await startParley({ settings: stores });
    for (let i = 0; i < channels; i++) await filling.createChannel({ name: 'A channel' });
    await eventually(async () => (await witnessIn(redisUrl)) !== null);
    await filling.stop();
  }

  async function witnessIn(redisUrl: string): Promise<string | null> {
    const client = connectRedis(redisUrl);
    try {
      await waitForRedis(client, 60_000);
      const witnesses = await client.values(ALL_PROJECTION_KEYS.filter((key) => key.endsWith(':witness')));
      return witnesses.find((one) => one !== null)?.toString() ?? null;
    } finally {
      client.close();
    }
  }

  it.each((['gateway', 'projector'] as const).filter((role) => role === 'gateway' || IN_CAMPAIGN))(
    'end a %s that starts on an empty log, and nothing is written to that log',
    async (role) => {
      const stores = { redisUrl: redis.url, eventstoreUrl: empty.url };
      const mistaken = await startProcess({ ...stores, role, wait: false });
      expect(await mistaken.ended()).toBe(1);
      expect(mistaken.output()).toMatch(REFUSAL);
      expect(await readLog(empty.url, '')).toEqual([]);
    },
    120_000,
  );

  it.each(['the event store', 'Redis'].filter((away) => away === 'Redis' || IN_CAMPAIGN))(
    'are not changed by a projector of a longer log that starts while %s is down',
    async (away) => {
      const store = away === 'Redis' ? redis : longer;
      await store.kill9();
      const stores = { redisUrl: redis.url, eventstoreUrl: longer.url };
      const mistaken = await startProcess({ ...stores, role: 'projector' });
      expect((await mistaken.api.get('/health/ready')).status).toBe(503);
      // By now the check and the projector have different intervals between their attempts.
      await eventually(() => mistaken.output().split('will run again').length > 6);
      await store.restart();
      await eventually(() => !mistaken.alive());
      expect(await mistaken.ended()).toBe(1);
      expect(mistaken.output()).toMatch(REFUSAL);
      expect(await witnessIn(redis.url)).toBe(witness);
    },
    180_000,
  );
});
