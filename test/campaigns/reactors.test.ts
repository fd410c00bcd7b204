/*
 * Three workers process jobs of several steps while they are killed, paused and replaced, and the event store is
 * restarted and killed: each job ends once, and no outcome of a step is recorded twice. REACTORS_JOBS and
 * REACTORS_ROUNDS set the length, REACTORS_SEED the choices: `npm run test:reactors`.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectEventStore, type EventStoreClients } from '#libs/platform/eventstore/index.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import { startTestProcess, type TestProcess } from '#test/support/child-process.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { allEnded, jobProblems } from '#test/support/reactors/job-checker.ts';
import { HOPELESS, requestJob } from '#test/support/reactors/jobs.ts';

const JOBS = Number(process.env['REACTORS_JOBS'] ?? 45);
const ROUNDS = Number(process.env['REACTORS_ROUNDS'] ?? 1);
const SEED = Number(process.env['REACTORS_SEED'] ?? 1);
const TIMEOUT_MS = 120_000 + ROUNDS * 60_000;
const STEPS = 4;
/** The event store redelivers events that were not acknowledged within twice this time. */
const STEP_TIMEOUT_MS = 500;
/** The event store disconnects a silent worker after twice this time. */
const KEEP_ALIVE_MS = 2_000;
const CATEGORY = 'job';

const random = randomFrom(SEED);
let eventStore: TestEventStoreProcess;
let client: EventStoreClients;
let workers: [TestProcess, TestProcess, TestProcess];
const started: TestProcess[] = [];

/** It joins at the first message. */
function startWorker(): TestProcess {
  const worker = startTestProcess(join(import.meta.dirname, '../support/reactors/worker.process.ts'), {
    EVENTSTORE_URL: eventStore.url,
    JOB_CATEGORY: CATEGORY,
    WORKER: `worker ${started.length}`,
    STEP_TIMEOUT_MS: String(STEP_TIMEOUT_MS),
  });
  started.push(worker);
  return worker;
}

beforeAll(async () => {
  eventStore = await startTestEventStore({ mode: 'process', keepAliveMs: KEEP_ALIVE_MS });
  client = await connectEventStore({ url: eventStore.url });
  workers = [startWorker(), startWorker(), startWorker()];
});

afterAll(async () => {
  await Promise.all(started.map((worker) => worker.kill9()));
  await client?.close();
  await eventStore?.stop();
});

async function request(count: number): Promise<void> {
  const steps = Array.from({ length: count }, () => (random(10) === 0 ? HOPELESS : STEPS));
  // A request whose answer was lost is sent again under another id, so the log is counted.
  await Promise.all(steps.map((count) => eventually(() => requestJob(client.store, CATEGORY, count))));
}

const jobLog = () => readLog(eventStore.url, `${CATEGORY}-`);

const joined = (worker: TestProcess): Promise<unknown> =>
  eventually(async () => expect(await worker.detail()).toMatchObject({ isJoined: true }), { timeoutMs: 60_000 });

const idle = (worker: TestProcess): Promise<unknown> =>
  eventually(async () => expect(await worker.detail()).toEqual({ isJoined: true, running: 0, held: 0, lagMs: 0 }));

const allDone = (): Promise<unknown> =>
  eventually(async () => allEnded(await jobLog()), { timeoutMs: 60_000, everyMs: 100 });

/**
 * Requests jobs until the worker has steps in progress, so that the next failure meets them. On a busy machine all of
 * them may have ended before they are seen in progress.
 */
const keepBusy = (worker: TestProcess, count: number): Promise<unknown> =>
  eventually(
    async () => {
      await request(count);
      const isBusy = async (): Promise<boolean> => Number((await worker.detail())['running']) > 0;
      while (!(await isBusy())) if (allEnded(await jobLog())) return false;
      return true;
    },
    { timeoutMs: 60_000 },
  );

it(
  'every job ends once and no outcome is duplicated, whatever happens to workers and the event store',
  async () => {
    await Promise.all(workers.map(joined));
    for (let round = 0; round < ROUNDS; round++) {
      const count = Math.ceil(JOBS / ROUNDS / 3);
      const [victim, sleeper, third] = workers;
      const next = [startWorker(), startWorker()] as const;

      // 1. A worker is killed, and the event store is killed as well or restarted.
      await keepBusy(victim, count);
      await victim.kill9();
      if (round % 2 === 1) await eventStore.kill9();
      await eventStore.restart();

      // 2. A worker is paused until others have received its events, and then continues with them: outcomes conflict.
      await joined(sleeper);
      await keepBusy(sleeper, count);
      sleeper.pause();
      await joined(next[0]);
      await delay(3 * STEP_TIMEOUT_MS);
      sleeper.resume();

      // 3. Jobs also end while a paused worker holds some. It wakes after it was replaced, and writes nothing more.
      await joined(third);
      await keepBusy(third, count);
      third.pause();
      await joined(next[1]);
      await allDone();
      const before = await jobLog();
      expect(jobProblems(before)).toEqual([]);
      third.resume();
      await Promise.all([sleeper, third, ...next].map(idle));
      expect(await jobLog()).toEqual(before);

      // 4. A worker is replaced as an operator does it.
      await sleeper.end();
      workers = [third, ...next];
    }
    const log = await jobLog();
    expect(log.filter(({ type }) => type === 'JobRequested.v1').length).toBeGreaterThanOrEqual(JOBS);
    const outcomes = log.filter(({ type }) => type === 'JobDone.v1');
    expect(new Set(outcomes.map(({ data }) => data['worker'])).size).toBeGreaterThan(1);
  },
  TIMEOUT_MS,
);
