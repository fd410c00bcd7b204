/** Reads over HTTP: the whole product, authenticated, against servers that do less with the same bytes. */
import { startTestRedis } from '#test/support/redis.ts';

import type { Benchmark, Prepared, Row, Sample, Scale } from './benchmark.ts';
import {
  type ChannelFixture,
  prepareChannels,
  prepareDistinctReads,
  prepareInteractions,
  prepareManyInteractions,
} from './channel-fixture.ts';
import { startChild } from './child-process.ts';
import { loadHttp } from './load/http-load.ts';

const CONNECTIONS = 64;
const OPEN_LOOP_RATE = 4_000;

interface ReadBenchmark {
  readonly name: string;
  readonly title: string;
  /** Of the bare servers. */
  readonly route: string;
  /** Each path is read again only after all others. */
  readonly once?: boolean;
  prepare(): Promise<ChannelFixture>;
}

const CHANNEL: ReadBenchmark = {
  name: 'get',
  title: 'GET channel, authenticated',
  route: '/api/v1/channels/:id',
  prepare: () => prepareChannels(1),
};

const INTERACTION: ReadBenchmark = {
  name: 'get-interaction',
  title: 'GET one interaction, authenticated',
  route: '/api/v1/interactions/:id',
  prepare: () => prepareInteractions('one'),
};

const MANY: ReadBenchmark = {
  name: 'get-interaction-many',
  title: 'GET one interaction of 1,000 channels, at random',
  route: '/api/v1/interactions/:id',
  prepare: () => prepareManyInteractions(1_000),
};

const NESTED: ReadBenchmark = {
  name: 'get-nested',
  title: 'GET one interaction with the five below it',
  route: '/api/v1/interactions/:id',
  prepare: () => prepareInteractions('nested'),
};

/** More than a gateway remembers: 64 MiB, at least 1 KiB each. */
const INTERACTIONS_ONCE = 80_000;
/** More than are read in a run. */
const PAGES_ONCE = 30_000;

const ONCE: ReadBenchmark = {
  name: 'get-interaction-once',
  title: 'GET one interaction, each read once',
  route: '/api/v1/interactions/:id',
  once: true,
  prepare: () => prepareDistinctReads('one', INTERACTIONS_ONCE),
};

const LIST_ONCE: ReadBenchmark = {
  name: 'list-once',
  title: 'GET 50 interactions, each page read once',
  route: '/api/v1/channels/:id/interactions',
  once: true,
  prepare: () => prepareDistinctReads('list', PAGES_ONCE),
};

const LIST: ReadBenchmark = {
  name: 'list',
  title: 'GET the newest 50 interactions',
  route: '/api/v1/channels/:id/interactions',
  prepare: () => prepareInteractions('list'),
};

export const getBenchmarks: readonly Benchmark[] = [
  closedLoop(CHANNEL, 1.1),
  openLoop(CHANNEL),
  closedLoop(INTERACTION, 1.1),
  openLoop(INTERACTION),
  closedLoop(MANY),
  closedLoop(NESTED, 1),
  closedLoop(LIST, 2),
  closedLoop(ONCE),
  closedLoop(LIST_ONCE),
];

/** @param atLeast goal against the pass-through; that against a stack on PostgreSQL is of the group `postgres` */
function closedLoop(read: ReadBenchmark, atLeast?: number): Benchmark {
  const row = (theirs: string): Row => ({
    title: read.title,
    ours: 'parley',
    theirs,
    figure: 'rate',
    unit: '1/s',
  });
  return {
    name: read.name,
    rows: [row('constant'), { ...row('pass-through'), ...(atLeast !== undefined && { goal: { atLeast } }) }],
    prepare: () => prepareRead(read),
  };
}

function openLoop(read: ReadBenchmark): Benchmark {
  const [title, ours, theirs] = [`${read.title}, at ${OPEN_LOOP_RATE}/s, open loop`, 'parley', 'constant'];
  return {
    name: `${read.name}-p99`,
    rows: [
      { title: `${title}: p99`, ours, theirs, figure: 'p99', unit: 'ms', goal: { atMost: 2.5 } },
      { title: `${title}: p50`, ours, theirs, figure: 'p50', unit: 'ms' },
    ],
    async prepare() {
      const { sides, cleanUp } = await prepareRead(read, OPEN_LOOP_RATE);
      const { parley, constant } = sides;
      return { sides: { ...(parley && { parley }), ...(constant && { constant }) }, cleanUp };
    },
  };
}

async function prepareRead({ route, once = false, prepare }: ReadBenchmark, rate?: number): Promise<Prepared> {
  const [{ headers, paths, body, start, cleanUp }, redis] = await Promise.all([prepare(), startTestRedis()]);
  const path = paths[0] ?? '';

  async function load(pid: number, url: URL, { seconds, warmUpSeconds }: Scale): Promise<Sample> {
    const answer = await fetch(new URL(path, url), { headers });
    if ((await answer.text()) !== body) throw new Error('the sides answer different bytes');
    const requests = Array.from({ length: CONNECTIONS }, (_, nth) => {
      const own = once ? paths.filter((_path, index) => index % CONNECTIONS === nth) : paths;
      return { method: 'GET', path: own, takeTurns: once, headers };
    });
    const sample = await loadHttp([pid], url, {
      requests,
      seconds,
      warmUpSeconds,
      ...(rate !== undefined && { rate }),
    });
    return { ...sample, figures: { ...sample.figures, bytes: Buffer.byteLength(body) } };
  }

  async function bare(file: string, task: object, scale: Scale): Promise<Sample> {
    const server = startChild(file);
    try {
      const { url } = await server.ask<{ url: string }>({ route, body, ...task });
      return await load(server.pid, new URL(url), scale);
    } finally {
      await server.stop();
    }
  }

  return {
    sides: {
      async parley(scale) {
        const parley = await start();
        try {
          return await load(parley.pid, parley.url, scale);
        } finally {
          await parley.stop();
        }
      },
      constant: (scale) => bare('sides/constant-server.process.ts', {}, scale),
      'pass-through': (scale) => bare('sides/pass-through-server.process.ts', { redisUrl: redis.url }, scale),
    },
    async cleanUp() {
      await Promise.all([cleanUp(), redis.stop()]);
    },
  };
}
