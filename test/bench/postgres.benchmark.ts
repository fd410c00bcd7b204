/**
 * Parley against the service that a team would write instead, on PostgreSQL, with the same guarantees: a post has an
 * idempotency key and a sequence of its channel, is durable when it is answered, and its frame reaches subscribers.
 */
import { randomUUID } from 'node:crypto';

import type { Benchmark, Prepared, Row, Sample, Scale } from './benchmark.ts';
import { type ChannelFixture, prepareChannels, prepareDistinctReads, prepareInteractions } from './channel-fixture.ts';
import { type Parley, startChild } from './child-process.ts';
import type { HttpRequest } from './load/http-connection.ts';
import { loadHttp } from './load/http-load.ts';
import type { PostToFrame, PostToFrameResult, SubscribedSocket } from './load/post-to-frame.process.ts';
import { createPostgresFolder, type PostgresFolder } from './sides/postgres-server.ts';
import type { StackTask } from './sides/postgres-stack.process.ts';
import { tickets } from './socket-fixture.ts';

const CALLERS = 64;
const RATE = 500;
/** Beyond this, latencies reflect the generator more than the server. */
const LATE_MS = 3;
/** More than are read in a run. */
const PAGES_ONCE = 30_000;
const VARIANTS = ['statements', 'function'] as const;

export const postgresBenchmarks: readonly Benchmark[] = [
  posts('postgres-hot', { channels: 1 }, (theirs) => [
    { ...row('posts of 64 callers in one channel', 'rate', '1/s', theirs), goal: { atLeast: 3 } },
    {
      ...row('processor time of a post and its frame at saturation', 'cpuMicros', 'us', theirs),
      goal: { atMost: 0.4 },
    },
  ]),
  posts('postgres-many', { channels: 64 }, (theirs) => [
    { ...row('posts of 64 callers in 64 channels', 'rate', '1/s', theirs), goal: { atLeast: 1.5 } },
    row('processor time of a post and its frame, 64 channels', 'cpuMicros', 'us', theirs),
  ]),
  posts('postgres-frame', { channels: 1, rate: RATE }, (theirs) => [
    { ...row(`POST to its frame at ${RATE}/s, open loop: p50`, 'p50', 'ms', theirs), goal: { atMost: 1 } },
    { ...row(`POST to its frame at ${RATE}/s, open loop: p99`, 'p99', 'ms', theirs), goal: { atMost: 1 } },
    { ...row(`processor time of a post and its frame at ${RATE}/s`, 'cpuMicros', 'us', theirs), goal: { atMost: 1 } },
  ]),
  reads('postgres-get', 'GET one interaction', 2.5, () => prepareInteractions('one')),
  reads('postgres-list', 'GET the newest 50 interactions', 3, () => prepareInteractions('list')),
  reads('postgres-list-once', 'GET 50 interactions, each page read once', 1, () =>
    prepareDistinctReads('list', PAGES_ONCE),
  ),
];

function row(title: string, figure: string, unit: string, theirs: string): Row {
  return { title, ours: 'parley', theirs, figure, unit };
}

interface Posts {
  readonly channels: number;
  /** Posts per second in open loop; closed loop if absent. */
  readonly rate?: number;
}

function posts(name: string, { channels, rate }: Posts, rows: (theirs: string) => readonly Row[]): Benchmark {
  return {
    name,
    rows: VARIANTS.flatMap(rows),
    async prepare() {
      const fixture = await prepareChannels(channels, { hasAgent: false });
      return withPostgres(fixture, {
        parley: (scale) => postToParley(fixture, rate, scale),
        async stack({ pids, url }, scale) {
          const sockets = fixture.paths.map((path) => ({ path: `${path}/websocket`, protocols: [], framesFirst: 1 }));
          return postToFrame({ pids, url, fixture, sockets, rate }, scale);
        },
      });
    },
  };
}

function reads(name: string, title: string, atLeast: number, prepare: () => Promise<ChannelFixture>): Benchmark {
  return {
    name,
    // Both variants read in the same way.
    rows: [
      { ...row(title, 'rate', '1/s', 'statements'), goal: { atLeast } },
      row(`${title}: p99`, 'p99', 'ms', 'statements'),
    ],
    async prepare() {
      const fixture = await prepare();
      const load = ({ pids, url }: Server, { seconds, warmUpSeconds }: Scale) => {
        const requests = Array.from({ length: CALLERS }, (_, nth) => ({
          method: 'GET',
          path: fixture.paths.filter((_path, index) => fixture.paths.length === 1 || index % CALLERS === nth),
          takeTurns: true,
          headers: fixture.headers,
        }));
        return loadHttp(pids, url, { requests, seconds, warmUpSeconds });
      };
      return withPostgres(
        fixture,
        {
          async parley(scale) {
            const parley = await fixture.start();
            try {
              return await load({ pids: [parley.pid], url: parley.url }, scale);
            } finally {
              await parley.stop();
            }
          },
          async stack(server, scale) {
            const answer = await fetch(new URL(fixture.paths[0] ?? '', server.url), { headers: fixture.headers });
            if (contentOf(await answer.text()) !== contentOf(fixture.body))
              throw new Error('the sides answer different documents');
            return load(server, scale);
          },
        },
        ['statements'],
      );
    },
  };
}

/** The document, or those of a page without what differs about pages. */
function contentOf(body: string): string {
  const { items } = JSON.parse(body) as { items?: unknown };
  return items === undefined ? body : JSON.stringify(items);
}

interface Server {
  readonly pids: readonly number[];
  readonly url: URL;
}

interface Sides {
  parley(scale: Scale): Promise<Sample>;
  stack(server: Server, scale: Scale): Promise<Sample>;
}

async function withPostgres(
  fixture: ChannelFixture,
  { parley, stack }: Sides,
  variants: readonly StackTask['variant'][] = VARIANTS,
): Promise<Prepared> {
  const [folder, filling] = [await createPostgresFolder(), await dataOf(fixture)];
  const side = (variant: StackTask['variant']) => async (scale: Scale) => {
    if ('missing' in folder) return { figures: {}, remarks: [`skipped: ${folder.missing}`] };
    return onStack(folder, { ...filling, variant }, (server) => stack(server, scale));
  };
  return {
    sides: { parley, ...Object.fromEntries(variants.map((variant) => [variant, side(variant)])) },
    async cleanUp() {
      await Promise.all([fixture.cleanUp(), 'missing' in folder ? undefined : folder.remove()]);
    },
  };
}

async function onStack(
  folder: PostgresFolder,
  task: Omit<StackTask, 'postgresUrl'>,
  work: (server: Server) => Promise<Sample>,
): Promise<Sample> {
  const postgres = await folder.start();
  const stack = startChild('sides/postgres-stack.process.ts');
  try {
    const { url } = await stack.ask<{ url: string }>({ ...task, postgresUrl: postgres.url } satisfies StackTask);
    return await work({ pids: [stack.pid, postgres.pid], url: new URL(url) });
  } finally {
    await stack.stop();
    await postgres.stop();
  }
}

/** The channels of the fixture, and all interactions of the first of them, as Parley answers them. */
async function dataOf(fixture: ChannelFixture): Promise<Omit<StackTask, 'postgresUrl' | 'variant'>> {
  const { headers, paths } = fixture;
  const parley = await fixture.start();
  try {
    const ask = async (path: string, init: RequestInit = {}): Promise<string> => {
      const response = await fetch(new URL(path, parley.url), { headers, ...init });
      const text = await response.text();
      if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
      return text;
    };
    const channelIds = [...new Set(await Promise.all(paths.map((path) => channelOf(path, ask))))];
    const list = `/api/v1/channels/${channelIds[0]}/interactions`;
    const documents: StackTask['documents'][number][] = [];
    for (let before = ''; ; before = `&before_sequence=${documents.at(-1)?.sequence}`) {
      const { items } = JSON.parse(await ask(`${list}?size=50${before}`)) as { items: StackTask['documents'] };
      if (items.length === 0) break;
      documents.push(...items.map((item) => ({ id: item.id, sequence: item.sequence, json: JSON.stringify(item) })));
    }
    const template = JSON.parse(await ask(list, { method: 'POST', body: BODY })) as StackTask['template'];
    const apiKey = headers['authorization']?.replace('Bearer ', '') ?? '';
    return { apiKey, template, channelIds, documents };
  } finally {
    await parley.stop();
  }
}

async function channelOf(path: string, ask: (path: string) => Promise<string>): Promise<string> {
  const named = /channels\/([^/?]+)/.exec(path)?.[1];
  return named ?? (JSON.parse(await ask(path)) as { channel_id: string }).channel_id;
}

const BODY = JSON.stringify({
  participant: { type: 'non_authenticated_user', user_metadata: { name: 'Ada Brandt' } },
  content: [
    {
      type: 'text',
      text: 'For order ######## one payment of 39.90 went through. The second is only a reservation that your bank drops by itself.',
    },
  ],
  content_role: 'user_message',
  metadata: { source_time: '2026-01-31T12:00:00.000Z' },
});

async function postToParley(fixture: ChannelFixture, rate: number | undefined, scale: Scale): Promise<Sample> {
  const parley = await fixture.start();
  try {
    return await postToRunning(parley, fixture, rate, scale);
  } finally {
    await parley.stop();
  }
}

export async function postToRunning(
  { pid, url }: Pick<Parley, 'pid' | 'url'>,
  fixture: ChannelFixture,
  rate: number | undefined,
  scale: Pick<Scale, 'seconds' | 'warmUpSeconds'>,
): Promise<Sample> {
  const sockets: SubscribedSocket[] = [];
  for (const path of fixture.paths) {
    const [ticket = ''] = await tickets(url, { ...fixture, paths: [path] }, 1);
    const protocols = ['parley.v1', `ticket.${ticket}`];
    sockets.push({ path: `${path}/websocket`, protocols, greeting: '{"frame":"resume"}', framesFirst: 2 });
  }
  return postToFrame({ pids: [pid], url, fixture, sockets, rate }, scale);
}

interface Posting extends Server {
  readonly fixture: ChannelFixture;
  readonly sockets: readonly SubscribedSocket[];
  readonly rate: number | undefined;
}

async function postToFrame(
  { pids, url, fixture, sockets, rate }: Posting,
  { seconds, warmUpSeconds }: Pick<Scale, 'seconds' | 'warmUpSeconds'>,
): Promise<Sample> {
  const { paths, headers } = fixture;
  // The keys of another run on the same data would get its replies.
  const key = `${randomUUID()}-########`;
  const requests = Array.from({ length: CALLERS }, (_, index): HttpRequest => {
    const path = `${paths[index % paths.length]}/interactions`;
    return { method: 'POST', path, headers: { ...headers, 'idempotency-key': key }, body: BODY };
  });
  const generator = startChild('load/post-to-frame.process.ts');
  try {
    const place = { host: url.hostname, port: Number(url.port), pids };
    const task = { ...place, requests, sockets, seconds, warmUpSeconds, ...(rate !== undefined && { rate }) };
    const result = await generator.ask<PostToFrameResult>(task satisfies PostToFrame);
    const { frames, refused, missing, p50, p99, lagP99, cpuSeconds } = result;
    if (refused > 0 || missing > 0) throw new Error(`${refused} posts were refused, ${missing} frames never came`);
    return {
      figures: { rate: frames / seconds, p50, p99, cpuMicros: (cpuSeconds / frames) * 1e6 },
      remarks: lagP99 > LATE_MS ? [`the load generator was late by more than ${LATE_MS} ms`] : [],
    };
  } finally {
    await generator.stop();
  }
}
