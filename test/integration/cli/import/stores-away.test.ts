/** Stores that go down during `parley import`, and come back or stay down. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { ProgressFile } from '#services/cli/import/progress-file.ts';
import { startParleyCommand } from '#test/support/command-line.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { type ParleyHere, startParleyHere } from '#test/support/parley-here.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

/** More than an import has in flight, before and after a store goes down. */
const CONVERSATIONS = 200;

let eventStore: TestEventStoreProcess;
let redis: TestRedis;
let parley: ParleyHere;
let work: string;
let sources = 0;

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'parley-test-away-'));
  [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  parley = await startParleyHere({ EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url });
});
afterEach(async () => {
  vi.restoreAllMocks();
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

/** Calls `act` while the import notes that the first messages are in the log, before it sends the next ones. */
function whenUnderWay(act: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const { note } = ProgressFile.prototype;
    vi.spyOn(ProgressFile.prototype, 'note').mockImplementationOnce(function (this: ProgressFile, progress) {
      act().then(resolve, reject);
      note.call(this, progress);
    });
  });
}

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
      const isAway = whenUnderWay(away);
      const { exit, stderr } = startImport(path, 60);
      await isAway;
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
    const isAway = whenUnderWay(() => eventStore.kill9());
    const cut = startImport(path, 1);
    await isAway;
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
