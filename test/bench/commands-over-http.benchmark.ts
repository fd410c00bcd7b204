/**
 * Commands over HTTP (new names of channels, new interactions) against bare appends of the same events by the
 * official client, and against the same commands without HTTP.
 */
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { onFreshStores } from './append.benchmark.ts';
import { type AppendAnswer, appendedPost, type AppendTask, type Written } from './appended-event.ts';
import type { Benchmark } from './benchmark.ts';
import { prepareChannels } from './channel-fixture.ts';
import { askOnce, NODE_FLAGS } from './child-process.ts';
import { loadHttp } from './load/http-load.ts';

const CALLERS = 64;

interface HttpCommandBenchmark {
  readonly name: string;
  readonly title: string;
  readonly what: Written & keyof typeof REQUESTS;
  readonly connections: number;
  /** Whether all connections change the same channel. */
  readonly oneChannel: boolean;
  /** Events in one append of the official client. */
  readonly batch: number;
}

// As long as the text of the other side; the load generator replaces the `#`.
const { participant, content, contentRole, metadata } = appendedPost(0, '0198f3aa-7c11-7d55-8e7a-0000000000cc', null);
const REQUESTS = {
  names: { method: 'PATCH', below: '', body: JSON.stringify({ name: 'Support of order 00########' }) },
  posts: {
    method: 'POST',
    below: '/interactions',
    body: JSON.stringify({ participant, content, content_role: contentRole, metadata }).replace(
      '0000000000',
      '00########',
    ),
  },
};

export const httpCommandBenchmarks: readonly Benchmark[] = [
  httpCommandBenchmark({
    name: 'patch',
    what: 'names',
    title: 'PATCH channel, one caller; official client one event at a time',
    connections: 1,
    oneChannel: true,
    batch: 1,
  }),
  httpCommandBenchmark({
    name: 'patch-hot',
    what: 'names',
    title: 'PATCH of one channel by 64 callers; official client in batches of 100',
    connections: 64,
    oneChannel: true,
    batch: 100,
  }),
  httpCommandBenchmark({
    name: 'patch-many',
    what: 'names',
    title: 'PATCH of 64 channels by 64 callers; official client on 64 streams, one event at a time',
    connections: 64,
    oneChannel: false,
    batch: 1,
  }),
  httpCommandBenchmark({
    name: 'post-http',
    what: 'posts',
    title: 'POST of an interaction, one caller; official client one event at a time',
    connections: 1,
    oneChannel: true,
    batch: 1,
  }),
  withoutHttp(),
];

function httpCommandBenchmark({ name, title, what, connections, oneChannel, batch }: HttpCommandBenchmark): Benchmark {
  return {
    name,
    rows: [{ title, ours: 'parley', theirs: 'official', figure: 'rate', unit: 'events/s' }],
    async prepare() {
      const { headers, paths, start, cleanUp } = await prepareChannels(oneChannel ? 1 : connections);
      const { method, below, body } = REQUESTS[what];
      const requests = Array.from({ length: connections }, (_, index) => ({
        method,
        path: `${paths[index % paths.length] ?? ''}${below}`,
        headers,
        body,
      }));
      const streams = paths.length;
      return {
        sides: {
          async parley({ seconds, warmUpSeconds }) {
            const parley = await start();
            try {
              return await loadHttp([parley.pid], parley.url, { requests, seconds, warmUpSeconds });
            } finally {
              await parley.stop();
            }
          },
          async official({ seconds, warmUpSeconds }) {
            const eventStore = await startTestEventStore({ mode: 'process' });
            try {
              const task = {
                eventstoreUrl: eventStore.url,
                redisUrl: '',
                what,
                writers: 1,
                streams,
                batch,
                seconds,
                warmUpSeconds,
              };
              const { rate, cpuMicros } = await askOnce<AppendAnswer>('sides/official-append.process.ts', task);
              return { figures: { rate, cpuMicros } };
            } finally {
              await eventStore.stop();
            }
          },
        },
        cleanUp,
      };
    },
  };
}

/** The gateway alone, on the stores of `post-hot`, against the commands of that row: they differ in HTTP alone. */
function withoutHttp(): Benchmark {
  const title = 'POST in one channel by 64 callers, a gateway alone; the same commands without HTTP';
  return {
    name: 'post-http-hot',
    rows: [{ title, ours: 'gateway', theirs: 'commands', figure: 'rate', unit: 'events/s' }],
    async prepare() {
      const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
      const env = { EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url, ROLES: 'gateway' };
      const { headers, paths, start, cleanUp } = await prepareChannels(1, { hasAgent: false, env });
      const request = { method: 'POST', path: `${paths[0]}/interactions`, headers, body: REQUESTS.posts.body };
      const requests = Array.from({ length: CALLERS }, () => request);
      return {
        sides: {
          async gateway({ seconds, warmUpSeconds }) {
            const parley = await start();
            try {
              return await loadHttp([parley.pid], parley.url, { requests, seconds, warmUpSeconds });
            } finally {
              await parley.stop();
            }
          },
          commands: ({ seconds, warmUpSeconds }) =>
            onFreshStores(async (stores) => {
              const work = { what: 'posts', writers: CALLERS, streams: 1, batch: 1, seconds, warmUpSeconds } as const;
              const options = { execArgv: NODE_FLAGS };
              const task: AppendTask = { ...stores, ...work };
              const { rate, cpuMicros } = await askOnce<AppendAnswer>(
                'sides/parley-commands.process.ts',
                task,
                options,
              );
              return { figures: { rate, cpuMicros } };
            }),
        },
        async cleanUp() {
          await cleanUp();
          await Promise.all([eventStore.stop(), redis.stop()]);
        },
      };
    },
  };
}
