/** Answers of a model in channels, as subscribers read them, against a proxy that passes the same streams on. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createApiKey } from '#libs/platform/http/index.ts';

import type { Benchmark, Row, Sample } from './benchmark.ts';
import { askOnce, cpuSecondsOf, startChild, startParley } from './child-process.ts';
import type { StreamsResult, StreamsTask } from './load/streams.process.ts';
import { warmUpInRounds } from './load/warm-up.ts';
import type { StreamModelTask } from './sides/stream-model.process.ts';

/** A model of ordinary speed: 50 tokens a second. */
const INTERVAL_MS = 20;
/** Language models take longer to begin: hundreds of milliseconds. */
const FIRST_MS = 100;
const BODY = JSON.stringify({ content: [{ type: 'text', text: 'What do you say?' }] });

interface Workload {
  readonly firstMs: number;
  readonly clients: number;
  readonly posts: number;
  /** Posts of each client in a round of the warm-up, at once: they load and compile what answers need. */
  readonly warmUps: number;
  readonly isParallel: boolean;
  readonly tokens: number;
}

/** Parley with an agent that has a tool, or none. */
type Ours = 'parley' | 'parley-tool';

const first = (what: string, ours: Ours = 'parley') =>
  `first token of an answer${ours === 'parley' ? '' : ' of an agent with a tool'}, ${FIRST_MS} ms after the request: from the model to a subscriber, ${what}`;

export const runBenchmarks: readonly Benchmark[] = [
  benchmark(
    'first-delta',
    [
      row(first('p50'), 'firstP50', 'ms', { atMost: 3 }),
      row(first('p99'), 'firstP99', 'ms'),
      row(first('p50', 'parley-tool'), 'firstP50', 'ms', { ours: 'parley-tool' }),
      row(first('p99', 'parley-tool'), 'firstP99', 'ms', { ours: 'parley-tool' }),
    ],
    (amount) => ({
      clients: 4,
      posts: Math.ceil(25 * amount),
      warmUps: 25,
      isParallel: false,
      firstMs: FIRST_MS,
      tokens: 5,
    }),
  ),
  answers(200, { cpu: 4, lateMs: 200 }),
  answers(50, { lateMs: 50 }),
];

interface RowOptions {
  readonly ours?: Ours;
  readonly atMost?: number | undefined;
}

function row(title: string, figure: string, unit: string, { ours = 'parley', atMost }: RowOptions = {}): Row {
  return { title, ours, theirs: 'proxy', figure, unit, ...(atMost !== undefined && { goal: { atMost } }) };
}

/** @param count below the limit of one worker, which is 256 */
function answers(count: number, goals: { readonly cpu?: number; readonly lateMs: number }): Benchmark {
  const title = `${count} answers at once, 50 tokens a second each`;
  const late = `${title}: how late a subscriber reads a token`;
  const measured = benchmark(
    `runs-${count}`,
    [
      row(`${title}: processor time of a token`, 'cpuMicros', 'us', { atMost: goals.cpu }),
      row(`${late}, p50`, 'allP50', 'ms'),
    ],
    (amount) => ({
      clients: count,
      posts: 1,
      warmUps: 1,
      isParallel: true,
      firstMs: 0,
      tokens: Math.ceil(500 * amount),
    }),
  );
  const limit = { title: `${late}, p99`, ours: 'parley', theirs: 'limit', figure: 'allP99', unit: 'ms' };
  return {
    ...measured,
    rows: [...measured.rows, { ...limit, goal: { atMost: 1 } }],
    async prepare(scale) {
      const { sides, cleanUp } = await measured.prepare(scale);
      return { sides: { ...sides, limit: async () => ({ figures: { allP99: goals.lateMs } }) }, cleanUp };
    },
  };
}

function benchmark(name: string, rows: readonly Row[], workloadOf: (amount: number) => Workload): Benchmark {
  return {
    name,
    rows,
    async prepare({ amount }) {
      const workload = workloadOf(amount);
      const model = startChild('sides/stream-model.process.ts');
      const task: StreamModelTask = { tokens: workload.tokens, firstMs: workload.firstMs, intervalMs: INTERVAL_MS };
      const { port } = await model.ask<{ port: number }>(task);
      const sides = { ...PARLEYS, proxy: throughProxy };
      const used = Object.entries(sides).filter(([side]) => rows.some((one) => [one.ours, one.theirs].includes(side)));
      return {
        sides: Object.fromEntries(used.map(([side, through]) => [side, () => through(port, workload)])),
        cleanUp: () => model.stop(),
      };
    },
  };
}

const PARLEYS = {
  parley: (port, workload) => throughParley(port, workload, { name: 'Ada' }),
  'parley-tool': (port, workload) =>
    throughParley(port, workload, { name: 'Ada', features: { general_web_search: true } }),
} satisfies Record<Ours, (port: number, workload: Workload) => Promise<Sample>>;

async function throughProxy(port: number, workload: Workload): Promise<Sample> {
  const proxy = startChild('sides/stream-proxy.process.ts');
  try {
    const own = await proxy.ask<{ port: number }>({ port });
    const clients = Array.from({ length: workload.clients }, () => ({ post: '/v1/chat/completions', follow: null }));
    const headers = { 'content-type': 'application/json' };
    return await warmedUp({ pid: proxy.pid, origin: `http://127.0.0.1:${own.port}`, headers, clients }, workload);
  } finally {
    await proxy.stop();
  }
}

async function throughParley(port: number, workload: Workload, agent: object): Promise<Sample> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-runs-'));
  const apiKey = createApiKey();
  const env = { MODEL_BASE_URL: `http://127.0.0.1:${port}/v1`, MODEL_NAME: 'stream' };
  const parley = await startParley(dataDir, apiKey, { env });
  try {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const create = async (path: string, body: object): Promise<string> => {
      const response = await fetch(new URL(`/api/v1/${path}`, parley.url), {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return ((await response.json()) as { id: string }).id;
    };
    const id = await create('agents', agent);
    const channel = { name: 'a', participants: [{ type: 'agent', id }], agent_invocation_behavior: 'all_messages' };
    const clients: StreamsTask['clients'][number][] = [];
    for (let n = 0; n < workload.clients; n += 1) {
      const path = `/api/v1/channels/${await create('channels', channel)}`;
      const follow = `${path}/events?include=incomplete,nested,ephemeral`;
      clients.push({ post: `${path}/interactions`, follow });
    }
    return await warmedUp({ pid: parley.pid, origin: parley.url.origin, headers, clients }, workload);
  } finally {
    await parley.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

type Place = Pick<StreamsTask, 'origin' | 'headers' | 'clients'> & { readonly pid: number };

async function warmedUp(place: Place, workload: Workload): Promise<Sample> {
  await warmUpInRounds([place.pid], () => load(place, { ...workload, posts: workload.warmUps, isParallel: true }));
  return load(place, workload);
}

async function load({ pid, ...place }: Place, { posts, isParallel, tokens, clients }: Workload): Promise<Sample> {
  const before = await cpuSecondsOf(pid);
  const task: StreamsTask = { ...place, body: BODY, posts, isParallel };
  const { firsts, all, tokens: read } = await askOnce<StreamsResult>('load/streams.process.ts', task);
  const cpuSeconds = (await cpuSecondsOf(pid)) - before;
  const expected = place.clients.length * posts * tokens;
  const missing = expected - read;
  return {
    figures: {
      firstP50: firsts.p50,
      firstP99: firsts.p99,
      allP50: all.p50,
      allP99: all.p99,
      cpuMicros: (cpuSeconds / expected) * 1e6,
    },
    // Drafts are not stored: what is late is in the completed answer only.
    remarks: missing > clients / 10 ? [`${missing} of ${expected} tokens came with the complete answer only`] : [],
  };
}
