/*
 * Workers are killed, paused and replaced while agents answer questions with three tool calls each: every run ends once,
 * with one response, and no tool call has two outcomes. Answers and pages are held while a worker fails, so that it is in
 * their middle for certain. RUNS_COUNT, RUNS_ROUNDS and RUNS_WORKERS set the length: `npm run test:runs`. Not part of
 * `npm test`, where it would take a quarter of a minute.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { type ModelServer, startModelServer } from '#test/support/model-server.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';
import { Gate } from '#test/support/runs/gate.ts';
import { addPages, answersQuestions, keyOf, pathOf, questionOf, TOOL_CALLS } from '#test/support/runs/questions.ts';
import { isEnd, runProblems } from '#test/support/runs/run-checker.ts';
import { startWebsite, type Website } from '#test/support/website.ts';

const RUNS = Number(process.env['RUNS_COUNT'] ?? 12);
const ROUNDS = Number(process.env['RUNS_ROUNDS'] ?? 1);
const WORKERS = Number(process.env['RUNS_WORKERS'] ?? 2);
const TIMEOUT_MS = 240_000 + ROUNDS * 120_000;
/** Steps that a worker has begun when it fails. */
const BUSY = 2;
/** The event store disconnects a silent worker after twice this time. */
const KEEP_ALIVE_MS = 4_000;
const WAIT = { timeoutMs: 120_000, everyMs: 100 };

const answers = new Gate();
const pages = new Gate();
let site: Website;
let server: ModelServer;
let api: DocumentsApi;
let agent: string;
const workers: ParleyProcess[] = [];
const channels: string[] = [];
let asked = 0;
/** How often a worker has failed since a question was asked, which had no answer then. */
const disturbed = new Map<number, number>();

beforeAll(async () => {
  [site, server] = await Promise.all([startWebsite(), startModelServer()]);
  server.script(answersQuestions(site, answers));
  api = await DocumentsApi.start({ hasWorker: false, keepAliveMs: KEEP_ALIVE_MS });
  const { eventStore, redis } = api.api.stores;
  const options = { role: 'worker', eventstoreUrl: eventStore.url, redisUrl: redis.url, wait: false } as const;
  const env = {
    FETCH_ALLOW_HOSTS: `127.0.0.1:${site.port}`,
    MODEL_BASE_URL: server.baseUrl,
    MODEL_NAME: 'small',
    MODEL_TIMEOUT_MS: '170000',
    MODEL_FIRST_TOKEN_TIMEOUT_MS: '170000',
    MODEL_IDLE_TIMEOUT_MS: '170000',
  };
  const starting = Array.from({ length: WORKERS }, (_, n) =>
    startParleyProcess({ ...options, env: { ...env, MODEL_API_KEY: keyOfWorker(n) } }),
  );
  workers.push(...(await Promise.all(starting)));
  const body = { name: 'Ada', features: { general_web_search: true } };
  agent = (await api.call('POST', '/api/v1/agents', body)).json.id;
}, 120_000);

afterAll(async () => {
  answers.open();
  pages.open();
  await Promise.all(workers.map((worker) => worker.stop()));
  await api?.stop();
  await Promise.all([site?.stop(), server?.stop()]);
});

const keyOfWorker = (n: number): string => `worker-${n}`;
/** `question step` of a key of the model. */
const stepOf = (key: string): string => key.slice(key.indexOf(' ') + 1);
/** Runs and channels. Read again when this process, too, was silent for so long that it was disconnected. */
const log = async () =>
  (await eventually(() => readLog(api.api.stores.eventStore.url, ''))).filter(({ stream }) =>
    /^(run|channel)-/.test(stream),
  );
const ended = async () => (await log()).filter(isEnd).length;

/** Two questions for each channel. */
async function ask(): Promise<void> {
  const n = asked++;
  addPages(site, pages, n);
  if (n % 2 === 0) {
    const participants = [{ type: 'agent', id: agent }];
    const body = { name: `Channel ${n}`, participants, agent_invocation_behavior: 'all_messages' };
    channels.push((await api.call('POST', '/api/v1/channels', body)).json.id);
  }
  const content = [{ type: 'text', text: questionOf(n) }];
  const url = `/api/v1/channels/${channels.at(-1)}/interactions`;
  expect((await api.call('POST', url, { content })).status).toBe(200);
}

async function askMore(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await ask();
}

/** Messages from before the first worker has joined invoke no agents. */
async function joined(worker: ParleyProcess): Promise<void> {
  await eventually(async () => {
    const { checks } = JSON.parse((await worker.api.get('/health/ready', { timeoutMs: 5_000 })).text);
    const { invocations, 'agent-runs': runs } = checks.reactors.detail;
    expect([invocations.joined, runs.joined]).toEqual([true, true]);
  }, WAIT);
}

/** Asks until the worker has begun some answers, which are held. */
async function keepBusy(n: number): Promise<readonly string[]> {
  const isOfWorker = (key: string): boolean => key.startsWith(`${keyOfWorker(n)} `);
  answers.close(isOfWorker);
  await joined(workers[n]!);
  const held = () => answers.held.filter(isOfWorker);
  await eventually(
    async () => {
      if (held().length < BUSY) await askMore(2);
      return held().length >= BUSY;
    },
    { ...WAIT, everyMs: 500 },
  );
  return held();
}

/** Counts the failure for the questions that have no answer yet. */
async function disturb(): Promise<void> {
  const done = new Set((await log()).filter(isEnd).map(({ stream }) => stream));
  expect(done.size).toBeLessThan(asked);
  for (let n = 0; n < asked; n += 1) disturbed.set(n, (disturbed.get(n) ?? 0) + 1);
}

async function kill(n: number): Promise<void> {
  await keepBusy(n);
  await disturb();
  await workers[n]!.kill9();
  answers.open();
  await workers[n]!.start({ wait: false });
}

/** All workers are killed while they read pages. */
async function killAll(): Promise<void> {
  pages.close();
  const isBusy = () => pages.held.length >= BUSY * WORKERS;
  await eventually(async () => {
    if (!isBusy()) await askMore(1);
    return isBusy();
  }, WAIT);
  await disturb();
  await Promise.all(workers.map((worker) => worker.kill9()));
  pages.open();
  await Promise.all(workers.map((worker) => worker.start({ wait: false })));
}

/**
 * Pauses a worker until other ones repeat its steps, and wakes it with the rest of its answers.
 *
 * @param isLate whether its steps have another outcome by then; otherwise, several workers race for it
 */
async function pause(n: number, { isLate }: { readonly isLate: boolean }): Promise<void> {
  const held = (await keepBusy(n)).map(stepOf);
  await disturb();
  const before = server.requests.length;
  workers[n]!.pause();
  const repeated = () => {
    const others = server.requests.slice(before).map(keyOf);
    return others.filter((key) => !key.startsWith(`${keyOfWorker(n)} `)).map(stepOf);
  };
  if (!isLate) answers.close();
  const next = isLate ? held.map((key) => nextStep(key)).filter((key) => key !== null) : [];
  await eventually(() => expect(repeated()).toEqual(expect.arrayContaining([...held, ...next])), WAIT);
  answers.open();
  workers[n]!.resume();
}

/** The request that follows from the outcome of a step; null after the last one. */
function nextStep(key: string): string | null {
  const [n, step] = key.split(' ').map(Number) as [number, number];
  return step < TOOL_CALLS ? `${n} ${step + 1}` : null;
}

/** As operators do it: the worker hands on what it cannot finish. */
async function replace(n: number): Promise<void> {
  await keepBusy(n);
  await disturb();
  await workers[n]!.halt();
  answers.open();
  await workers[n]!.start({ wait: false });
}

it(
  'every run ends once, with one response and one outcome of each tool call, whatever happens to workers',
  async () => {
    await Promise.all(workers.map(joined));
    for (let round = 0; round < ROUNDS; round += 1) {
      const worker = (offset: number): number => (round + offset) % WORKERS;
      await askMore(Math.ceil(RUNS / ROUNDS / 2));
      await kill(worker(0));
      await pause(worker(1), { isLate: round % 2 === 0 });
      await killAll();
      await replace(worker(2));
    }
    await askMore(RUNS - asked);
    await eventually(async () => expect(await ended()).toBe(asked), { timeoutMs: 300_000, everyMs: 2_000 });

    const events = await log();
    expect(runProblems(events)).toEqual([]);
    expect(events.filter(isEnd)).toHaveLength(asked);
    const reads = Map.groupBy(site.requests, (path) => path);
    for (let n = 0; n < asked; n += 1) {
      for (let step = 0; step < TOOL_CALLS; step += 1) {
        const count = reads.get(pathOf(n, step))?.length ?? 0;
        expect(count).toBeGreaterThanOrEqual(1);
        expect(count).toBeLessThanOrEqual(1 + (disturbed.get(n) ?? 0));
      }
    }

    // The checker finds what is planted.
    const end = events.find(isEnd)!;
    const tool = events.find(({ type }) => type === 'ToolStepFinished.v1')!;
    const post = events.findLast(({ type }) => type === 'InteractionPosted.v1')!;
    for (const planted of [end, tool, post]) {
      expect(runProblems([...events, { ...planted, id: 'planted' }])).not.toEqual([]);
      expect(runProblems(events.filter((event) => event !== planted))).not.toEqual([]);
    }
  },
  TIMEOUT_MS,
);
