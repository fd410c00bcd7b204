/** Stores that go down during `parley import`, and come back or stay down. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { startParleyCommand } from '#test/support/command-line.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

/** Enough to be under way for a second: a look at the log takes a part of it. */
const CONVERSATIONS = 2_000;

let eventStore: TestEventStoreProcess;
let redis: TestRedis;
let parley: ParleyProcess;
let work: string;
let sources = 0;

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'parley-test-away-'));
  [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  parley = await startParleyProcess({ eventstoreUrl: eventStore.url, redisUrl: redis.url });
  await parley.ready();
});
afterEach(async () => {
  await eventStore.resume();
  await redis.resume();
});
afterAll(async () => {
  await parley?.stop();
  await Promise.all([eventStore?.stop(), redis?.stop()]);
  await rm(work, { recursive: true, force: true });
});

/** A file of its own for each test, whose conversations name the test. */
async function writeSource(): Promise<{ readonly path: string; readonly name: string }> {
  const name = `away ${++sources}`;
  const lines = Array.from({ length: CONVERSATIONS }, (_, index) =>
    JSON.stringify({
      messages: [
        { role: 'user', content: `${name}: question ${index}` },
        { role: 'assistant', content: `${name}: answer ${index}` },
      ],
    }),
  );
  const path = join(work, `${name}.jsonl`);
  await writeFile(path, `${lines.join('\n')}\n`);
  return { path, name };
}

function startImport(path: string, wait: number) {
  const env = { DATA_DIR: work, EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url };
  const { ended, stderr } = startParleyCommand(env, 'import', path, '--json', '--wait', String(wait));
  return { exit: ended.then(({ exitCode: code, ...said }) => ({ code, ...said })), stderr };
}

const textsOf = async (name: string): Promise<string[]> => {
  const posted = (await readLog(eventStore.url, 'channel-')).filter(({ type }) => type === 'InteractionPosted.v1');
  return posted
    .map(({ data }) => String(Reflect.get(Object((data['content'] as unknown[])[0]), 'text')))
    .filter((text) => text.startsWith(`${name}:`));
};

/** It has saved its progress: work is done, and work is left. Of the first posts, which are sent together, none may be saved yet. */
const isUnderWay = async (): Promise<void> =>
  expect(await readdir(join(work, 'imports'))).toEqual([expect.stringMatching(/\.json$/)]);

/** Every conversation is there once, its answer below its question. */
async function expectAllOnce(name: string): Promise<void> {
  const texts = await textsOf(name);
  expect(texts).toHaveLength(2 * CONVERSATIONS);
  const places = new Map(texts.map((text, index) => [text, index]));
  const wrong = Array.from({ length: CONVERSATIONS }, (_, index) => index).filter((index) => {
    const [question, answer] = [places.get(`${name}: question ${index}`), places.get(`${name}: answer ${index}`)];
    return question === undefined || answer === undefined || answer < question;
  });
  expect(wrong).toEqual([]);
}

describe('an import, when a store goes down and comes back', () => {
  const failures = [
    {
      what: 'the event store dies',
      away: () => eventStore.kill9(),
      back: () => eventStore.restart(),
      says: 'The event store',
      inCampaign: false,
    },
    {
      what: 'the event store freezes',
      away: () => eventStore.pause(),
      back: () => eventStore.resume(),
      says: 'The event store',
      inCampaign: true,
    },
    {
      what: 'Redis dies',
      away: () => redis.kill9(),
      back: () => redis.restart(),
      says: 'Redis',
      inCampaign: false,
    },
    {
      what: 'Redis freezes',
      away: () => redis.pause(),
      back: () => redis.resume(),
      says: 'Redis',
      inCampaign: true,
    },
  ];

  it.each(failures.filter(({ inCampaign }) => !inCampaign || IN_CAMPAIGN))(
    'reports it, waits, and imports everything once: $what',
    async ({ away, back, says }) => {
      const { path, name } = await writeSource();
      const { exit, stderr } = startImport(path, 60);
      await eventually(isUnderWay, { everyMs: 20 });
      await away();
      await eventually(() => stderr().includes('retrying for up to'));
      await back();
      const { code, stdout, stderr: said } = await exit;
      expect({ code, said }).toEqual({
        code: 0,
        said: expect.stringMatching(/the store is back; the import continues\n$/),
      });
      expect(said).toContain(`parley: ${says}`);
      const { imported, already, bad } = JSON.parse(stdout);
      expect({ sum: imported + already, bad }).toEqual({ sum: 2 * CONVERSATIONS, bad: 0 });
      await expectAllOnce(name);
    },
  );
});

describe('an import, when a store stays down', () => {
  it('ends with an error that says how to resume, and resumes', async () => {
    const { path, name } = await writeSource();
    const cut = startImport(path, 1);
    await eventually(isUnderWay);
    await eventStore.kill9();
    const { code, stdout, stderr } = await cut.exit;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const lines = stderr.trim().split('\n');
    expect(lines[0]).toMatch(/^parley: The event store .*; retrying for up to 1 seconds$/);
    expect(lines.at(-1)).toMatch(/^parley: The event store .*; run the same command to resume$/);

    await eventStore.restart();
    const again = await startImport(path, 60).exit;
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ resumed: true, bad: 0 });
    await expectAllOnce(name);
  });

  it('reports at once that a store is down at the start', async () => {
    const { path } = await writeSource();
    await redis.pause();
    expect(await startImport(path, 1).exit).toEqual({
      code: 1,
      stdout: '',
      stderr: 'parley: Redis is unavailable\n',
    });
  });
});
