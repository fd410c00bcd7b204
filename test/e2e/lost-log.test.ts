/* A log that lacks events of the read models must be detected before anything is served from them, or written. */
import { cp, mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { findRunning } from '#infra/data-folder/index.ts';
import { ALL_PROJECTION_KEYS, CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { startParley } from '#services/testing/index.ts';
import { runParley } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestEventStore, type TestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { readLog } from '#test/support/log-reader.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

const REFUSAL =
  /parley: the log lacks events that the read models hold: event \d+ of \S+ \(position \d+\/\d+\) is not in it/;

const made = z.object({ id: z.string() });

let folder: string;
let parley: ParleyProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-lost-log-'));
  parley = await startParleyProcess();
  await parley.ready();
  await createChannel('Before the backup');
  expect(await command(['backup', join(folder, 'backup')])).toMatch(/log_check +passed/);
  await createChannel('After the backup');
  await parley.halt();
  await cp(eventStoreFolder(), newest(), { recursive: true });
}, 120_000);
afterAll(async () => {
  await parley.stop();
  await rm(folder, { recursive: true, force: true });
});

const eventStoreFolder = (): string => join(parley.dataDir, 'eventstore');
const older = (): string => join(folder, 'backup/eventstore');
const newest = (): string => join(folder, 'newest');

/** Resolves when the read models hold the channel, and a projector has saved its checkpoint. */
async function createChannel(name: string): Promise<string> {
  const { id } = made.parse((await parley.api.post('/api/v1/channels', { name })).json());
  const running = await findRunning(parley.dataDir);
  const redis = new Redis(running?.redisUrl ?? '');
  await eventually(async () => (await redis.get(CHANNEL_PROJECTION_KEYS.witness))?.includes(id) === true);
  redis.disconnect();
  return id;
}

const WITHOUT_ANY_EVENT: [what: string, lose: () => Promise<void>][] = [
  ['the folder of the event store is gone', () => rm(eventStoreFolder(), { recursive: true })],
  ['its file is empty', () => truncate(join(eventStoreFolder(), 'events.mdb'), 0)],
];

async function putLog(from: string): Promise<void> {
  await rm(eventStoreFolder(), { recursive: true });
  await cp(from, eventStoreFolder(), { recursive: true });
}

async function command(args: string[], variables: Record<string, string> = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await runParley({ DATA_DIR: parley.dataDir, ...variables }, ...args);
  return exitCode === 0 ? stdout : stderr;
}

it.each<[what: string, lose: () => Promise<void>]>([
  ...(IN_CAMPAIGN ? WITHOUT_ANY_EVENT : []),
  ['it is an older backup', () => putLog(older())],
  [
    'it is the longer log of another Parley',
    async () => {
      const dataDir = join(folder, 'other');
      const other = await startParley({ settings: { DATA_DIR: dataDir } });
      for (let i = 0; i < 5; i++) await other.createChannel({ name: 'Another' });
      await other.stop();
      await putLog(join(dataDir, 'eventstore'));
    },
  ],
])(
  'refuses to start when %s, and names the choices',
  async (_what, lose) => {
    await lose();
    await parley.start({ wait: false });
    expect(await parley.ended()).toBe(1);
    expect(parley.output()).toMatch(REFUSAL);
    expect(parley.output()).toMatch(/older backup .* then .*`npx parley rebuild --accept-lost-events`/);
  },
  120_000,
);

it('starts on the restored log', async () => {
  await putLog(newest());
  await parley.start();
  await parley.ready();
  expect((await parley.api.get('/api/v1/channels')).text).toContain('After the backup');
  await parley.halt();
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
  await parley.start();
  await parley.ready();
  const channels = (await parley.api.get('/api/v1/channels')).text;
  expect(channels).toContain('Before the backup');
  expect(channels).not.toContain('After the backup');
  await createChannel('After the loss');
  await parley.halt();
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
    const stores = { EVENTSTORE_URL: eventstoreUrl, REDIS_URL: redisUrl, PARLEY_BOOTSTRAP_KEY: parley.apiKey };
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

  it.each(['gateway', 'projector'] as const)(
    'end a %s that starts on an empty log, and nothing is written to that log',
    async (role) => {
      const stores = { redisUrl: redis.url, eventstoreUrl: empty.url, apiKey: parley.apiKey };
      const mistaken = await startParleyProcess({ ...stores, role, wait: false });
      expect(await mistaken.ended()).toBe(1);
      expect(mistaken.output()).toMatch(REFUSAL);
      expect(await readLog(empty.url, '')).toEqual([]);
      await mistaken.stop();
    },
    120_000,
  );

  it.each(['the event store', 'Redis'].filter((away) => away === 'Redis' || IN_CAMPAIGN))(
    'are not changed by a projector of a longer log that starts while %s is down',
    async (away) => {
      const store = away === 'Redis' ? redis : longer;
      await store.kill9();
      const stores = { redisUrl: redis.url, eventstoreUrl: longer.url, apiKey: parley.apiKey };
      const mistaken = await startParleyProcess({ ...stores, role: 'projector' });
      expect((await mistaken.api.get('/health/ready')).status).toBe(503);
      // By now the check and the projector have different intervals between their attempts.
      await eventually(() => mistaken.output().split('will run again').length > 6);
      await store.restart();
      await eventually(() => !mistaken.alive());
      expect(await mistaken.ended()).toBe(1);
      expect(mistaken.output()).toMatch(REFUSAL);
      expect(await witnessIn(redis.url)).toBe(witness);
      await mistaken.stop();
    },
    180_000,
  );
});
