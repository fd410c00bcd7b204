/** `GET /api/v1/channels/{id}`: the whole product, authenticated, against servers that do less. */
import { startTestRedis } from '#test/support/redis.ts';

import type { Benchmark, Prepared, Sample, Scale } from './benchmark.ts';
import { prepareChannels } from './channel-fixture.ts';
import { startChild } from './child-process.ts';
import { loadHttp } from './load/http-load.ts';

const CONNECTIONS = 64;
const OPEN_LOOP_RATE = 4_000;

export const getBenchmark: Benchmark = {
  name: 'get',
  rows: [
    {
      title: 'GET channel, authenticated',
      ours: 'parley',
      theirs: 'constant',
      figure: 'rate',
      unit: '1/s',
      goal: { atLeast: 0.8 },
    },
    {
      title: 'GET channel, authenticated',
      ours: 'parley',
      theirs: 'pass-through',
      figure: 'rate',
      unit: '1/s',
      goal: { atLeast: 1.5 },
    },
  ],
  prepare: () => prepareGet(),
};

export const getOpenLoopBenchmark: Benchmark = {
  name: 'get-p99',
  rows: [
    {
      title: `GET channel, p99 at ${OPEN_LOOP_RATE}/s, open loop`,
      ours: 'parley',
      theirs: 'constant',
      figure: 'p99',
      unit: 'ms',
      goal: { atMost: 2.5 },
    },
    {
      title: `GET channel, p50 at ${OPEN_LOOP_RATE}/s, open loop`,
      ours: 'parley',
      theirs: 'constant',
      figure: 'p50',
      unit: 'ms',
    },
  ],
  async prepare() {
    const { sides, cleanUp } = await prepareGet(OPEN_LOOP_RATE);
    const { parley, constant } = sides;
    return { sides: { ...(parley && { parley }), ...(constant && { constant }) }, cleanUp };
  },
};

async function prepareGet(rate?: number): Promise<Prepared> {
  const [{ headers, paths, body, start, cleanUp }, redis] = await Promise.all([prepareChannels(1), startTestRedis()]);
  const path = paths[0] ?? '';

  async function load(pid: number, url: URL, { seconds, warmUpSeconds }: Scale): Promise<Sample> {
    const answer = await fetch(new URL(path, url), { headers });
    if ((await answer.text()) !== body) throw new Error('the sides answer different bytes');
    const requests = Array.from({ length: CONNECTIONS }, () => ({ method: 'GET', path, headers }));
    return loadHttp(pid, url, { requests, seconds, warmUpSeconds, ...(rate !== undefined && { rate }) });
  }

  async function bare(file: string, task: object, scale: Scale): Promise<Sample> {
    const server = startChild(file);
    try {
      const { url } = await server.ask<{ url: string }>(task);
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
      constant: (scale) => bare('sides/constant-server.process.ts', { body }, scale),
      'pass-through': (scale) => bare('sides/pass-through-server.process.ts', { body, redisUrl: redis.url }, scale),
    },
    async cleanUp() {
      await Promise.all([cleanUp(), redis.stop()]);
    },
  };
}
