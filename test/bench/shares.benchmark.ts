/** What one organization waits beside the load of another one, against what it waits alone. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { createApiKey } from '#libs/platform/http/index.ts';

import { type Benchmark, measuredTogether } from './benchmark.ts';
import { startChild, startParley } from './child-process.ts';
import type { StreamsResult, StreamsTask } from './load/streams.process.ts';
import { percentile } from './statistics.ts';

/** Times that the other organization is measured, alone and beside the load. */
const MEASUREMENTS = 5;

interface Caller {
  /** For clients in processes of their own. */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  call(method: string, path: string, body?: object | Uint8Array): Promise<Response>;
  create(path: string, body: object | Uint8Array): Promise<string>;
}

interface Scene {
  readonly busy: Caller;
  readonly other: Caller;
  readonly server: TestServer;
  readonly amount: number;
  /** Called after the measurement. */
  readonly cleanUps: (() => Promise<void>)[];
}

interface Load {
  readonly name: string;
  readonly title: string;
  readonly goal: number;
  /** Milliseconds of one piece of work of the other organization. */
  measure(scene: Scene, graph: string): Promise<number>;
  /** Starts the load; it lasts longer than the measurement. */
  start(scene: Scene): Promise<void>;
  readonly quantile?: number;
  readonly measurements?: number;
}

const LOADS: readonly Load[] = [
  {
    name: 'shares-media',
    title: 'an upload until it is Ready, beside 8 media URLs that send a byte a second',
    goal: 3,
    measure: async ({ other }) => {
      const file = new TextEncoder().encode(`a text ${Math.random()}`);
      return timed(async () => reached(other, `media/${await other.create('media/uploads', file)}`, /^Ready/));
    },
    async start({ busy, server }) {
      for (let n = 0; n < 8; n += 1) await busy.create('media', { source_url: `${server.origin}/drip/${n}` });
      await server.isAsked('/drip', 3);
    },
  },
  {
    name: 'shares-crawls',
    title: 'a crawl of one page, beside 8 crawls of pages that send a byte a second',
    goal: 3,
    measure: ({ other, server }, graph) =>
      timed(async () => {
        const body = { url: `${server.origin}/page`, knowledge_graph: graph, scan_depth: 1 };
        await reached(other, `crawls/${await other.create('crawls', body)}`, /^Completed/);
      }),
    async start({ busy, server }) {
      for (let n = 0; n < 8; n += 1) await busy.create('crawls', { url: `${server.origin}/drip/${n}` });
      await server.isAsked('/drip', 3);
    },
  },
  {
    name: 'shares-documents',
    title: 'a document until it is Ready, behind 5,000 of another organization',
    goal: 3,
    measure: ({ other }, graph) =>
      timed(async () => {
        const body = { knowledge_graph: graph, name: 'one', text: `# One\n\nA sentence ${Math.random()}.` };
        await reached(other, `documents/${await other.create('documents', body)}`, /^Ready/);
      }),
    async start({ busy, amount }) {
      const graph = await busy.create('knowledge', { name: 'many' });
      const count = 5_000 * amount;
      let next = 0;
      const client = async (): Promise<void> => {
        while (next < count) {
          const body = { knowledge_graph: graph, name: `${(next += 1)}`, text: `# Many\n\nSentence ${next} of many.` };
          await busy.create('documents', body);
        }
      };
      await Promise.all(Array.from({ length: 32 }, client));
    },
  },
  {
    name: 'shares-webhooks',
    title: 'a message until its webhook is called, beside 60 calls of a webhook that does not answer',
    goal: 3,
    measure: async ({ other, server }) => {
      const { channel } = await channelWithAgent(other, `${server.origin}/hook`);
      const calls = server.countOf('/hook');
      return timed(async () => {
        await other.create(`channels/${channel}/interactions`, message());
        await server.isAsked('/hook', calls + 1);
      });
    },
    async start({ busy, server }) {
      const { channel } = await channelWithAgent(busy, `${server.origin}/silent`);
      for (let n = 0; n < 60; n += 1) await busy.create(`channels/${channel}/interactions`, message());
      await server.isAsked('/silent', 8);
    },
  },
  {
    name: 'shares-prompts',
    title: 'reads of one channel, p99, beside 500 prompt streams of one key that begin at once',
    goal: 3,
    quantile: 0.99,
    measurements: 300,
    measure: ({ other }) => timed(async () => void (await other.call('GET', 'channels?limit=1')).text()),
    async start({ busy, amount, cleanUps }) {
      const agent = await busy.create('agents', { name: 'Ada' });
      // In a process of its own: the time of the other organization's requests must not include that of these clients.
      const clients = startChild('load/streams.process.ts');
      cleanUps.push(() => clients.stop());
      const post = `/api/v1/agents/${agent}/stream_prompt`;
      const task: StreamsTask = {
        origin: busy.origin,
        headers: { ...busy.headers, 'content-type': 'application/json' },
        clients: Array.from({ length: 500 * amount }, () => ({ post, follow: null })),
        body: JSON.stringify({ prompt: 'What is it?' }),
        posts: 1,
        isParallel: true,
        mayFail: true,
      };
      void clients.ask<StreamsResult>(task).catch(() => undefined);
      await hasChannel(busy);
    },
  },
];

export const sharesBenchmarks: readonly Benchmark[] = LOADS.map((load) => ({
  name: load.name,
  rows: [
    {
      title: load.title,
      ours: 'beside',
      theirs: 'alone',
      figure: 'ms',
      unit: 'ms',
      goal: { atMost: load.goal },
    },
  ],
  prepare: async () => {
    const side = measuredTogether(({ amount }) => measureLoad(load, amount));
    return { sides: { beside: side('beside'), alone: side('alone') }, cleanUp: async () => undefined };
  },
}));

async function measureLoad(load: Load, amount: number) {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-shares-'));
  const rootKey = createApiKey();
  const server = await startServer();
  const cleanUps: (() => Promise<void>)[] = [];
  const parley = await startParley(dataDir, rootKey, { env: { FETCH_ALLOW_HOSTS: new URL(server.origin).host } });
  try {
    const root = callerOf(parley.url, rootKey);
    const [busy, other] = [await organization(root, parley.url), await organization(root, parley.url)];
    const scene = { busy, other, server, amount, cleanUps };
    const graph = await other.create('knowledge', { name: 'own' });
    const run = async (): Promise<number> => {
      const times: number[] = [];
      for (let n = 0; n < (load.measurements ?? MEASUREMENTS); n += 1) times.push(await load.measure(scene, graph));
      return percentile(times, load.quantile ?? 0.5);
    };
    await run();
    const alone = await run();
    await load.start(scene);
    return { alone: { ms: alone }, beside: { ms: await run() } };
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
    await server.stop();
    await parley.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function organization(root: Caller, url: URL): Promise<Caller> {
  const id = await root.create('organizations', { name: 'One of two' });
  const user = await root.create('users', { organization_id: id, display_name: 'Ada' });
  const principal = { type: 'user', id: user };
  const scopes = ['read', 'write', 'admin', 'impersonate'];
  const created = await root.call('POST', 'keys', {
    name: 'key',
    scopes,
    access: 'organization',
    principal,
    organization_id: id,
  });
  return callerOf(url, ((await created.json()) as { key: string }).key);
}

function callerOf(url: URL, key: string): Caller {
  const headers = { authorization: `Bearer ${key}` };
  const call = (method: string, path: string, body?: object | Uint8Array): Promise<Response> => {
    const isFile = body instanceof Uint8Array;
    return fetch(new URL(`/api/v1/${path}`, url), {
      method,
      headers: {
        ...headers,
        ...(body && { 'content-type': isFile ? 'application/octet-stream' : 'application/json' }),
      },
      ...(body && { body: isFile ? Buffer.from(body) : JSON.stringify(body) }),
    });
  };
  return {
    origin: url.origin,
    headers,
    call,
    async create(path, body) {
      const response = await call('POST', path, body);
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return ((await response.json()) as { id: string }).id;
    },
  };
}

async function channelWithAgent(caller: Caller, webhook: string) {
  const agent = await caller.create('agents', { name: 'External', runtime: 'external' });
  const set = await caller.call('POST', `agents/${agent}/webhook`, { url: webhook });
  if (!set.ok) throw new Error(`webhook: ${set.status} ${await set.text()}`);
  const participants = [{ type: 'agent', id: agent }];
  const channel = await caller.create('channels', {
    name: 'c',
    participants,
    agent_invocation_behavior: 'all_messages',
  });
  return { channel };
}

/** With the first prompt of its key. */
async function hasChannel(caller: Caller): Promise<void> {
  for (;;) {
    const { items } = (await (await caller.call('GET', 'channels?limit=1')).json()) as { items: unknown[] };
    if (items.length > 0) return;
    await pause(2);
  }
}

const message = () => ({ content: [{ type: 'text', text: 'What do you say?' }] });

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function reached(caller: Caller, path: string, status: RegExp): Promise<void> {
  for (const until = performance.now() + 180_000; performance.now() < until; await pause(5)) {
    const found = (await (await caller.call('GET', path)).json()) as { status: string };
    if (status.test(found.status)) return;
    if (found.status.startsWith('Failed')) throw new Error(`${path}: ${found.status}`);
  }
  throw new Error(`${path} did not become ${status}`);
}

interface TestServer {
  readonly origin: string;
  countOf(prefix: string): number;
  isAsked(prefix: string, count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Answers pages at once, `/drip` by a byte a second, and `/silent` never. */
async function startServer(): Promise<TestServer> {
  const paths: string[] = [];
  const dripping = new Set<ServerResponse>();
  const drips = setInterval(() => {
    for (const response of dripping) response.write('x');
  }, 1_000);
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    paths.push(path);
    if (path === '/robots.txt') return void response.writeHead(404).end();
    if (path.startsWith('/silent')) return;
    if (path.startsWith('/hook')) return void response.writeHead(204).end();
    response.writeHead(200, { 'content-type': 'text/html' });
    if (path.startsWith('/drip')) return void dripping.add(response);
    response.end('<title>A page</title><main><p>A page with a sentence on it.</p></main>');
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const countOf = (prefix: string): number => paths.filter((path) => path.startsWith(prefix)).length;
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    countOf,
    async isAsked(prefix, count) {
      for (const until = performance.now() + 60_000; countOf(prefix) < count; await pause(2)) {
        if (performance.now() > until) throw new Error(`${prefix} was not asked ${count} times`);
      }
    },
    async stop() {
      clearInterval(drips);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
