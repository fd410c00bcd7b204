/** Applying to the read model, against `redis-cli --pipe` that writes the same final keys. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';

import { dumpReadModels, digestOfDump } from '#test/support/read-model-dump.ts';
import { startTestRedis } from '#test/support/redis.ts';

import type { Benchmark, Sample } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface ApplyTask {
  readonly redisUrl: string;
  /** `documents`: batches of one entity; `channels`: events of many channels, decoded and folded. */
  readonly what: 'documents' | 'channels';
  readonly events: number;
}

export interface ApplyAnswer {
  readonly rate: number;
}

const DOCUMENT_EVENTS = 100_000;
const CHANNEL_EVENTS = 30_000;

export const applyBenchmark = applyBenchmarkOf({
  name: 'apply',
  title: 'apply, batches of one channel, a document an event',
  what: 'documents',
  events: DOCUMENT_EVENTS,
  goal: 0.8,
});

/** Not the same work: ours decodes, folds and serialises each event, theirs writes the results. */
export const applyChannelsBenchmark = applyBenchmarkOf({
  name: 'apply-channels',
  title: 'apply, new channels, decoding and folding included',
  what: 'channels',
  events: CHANNEL_EVENTS,
});

interface Options {
  readonly name: string;
  readonly title: string;
  readonly what: ApplyTask['what'];
  readonly events: number;
  readonly goal?: number;
}

function applyBenchmarkOf({ name, title, what, events: fullEvents, goal }: Options): Benchmark {
  return {
    name,
    rows: [
      {
        title,
        ours: 'parley',
        theirs: 'redis-cli --pipe',
        figure: 'rate',
        unit: 'events/s',
        ...(goal !== undefined && { goal: { atLeast: goal } }),
      },
    ],
    async prepare({ amount }) {
      const events = Math.round(fullEvents * amount);
      const folder = await mkdtemp(join(tmpdir(), 'parley-bench-'));
      const file = join(folder, 'commands.resp');
      const expected = await recordFinalKeys({ what, events }, file);
      const check = async (url: string): Promise<void> => {
        if ((await digestAt(url)) !== expected) throw new Error('the sides leave different keys behind');
      };
      return {
        sides: {
          parley: () =>
            onFreshRedis(async ({ url }) => {
              const task: ApplyTask = { redisUrl: url, what, events };
              const { rate } = await askOnce<ApplyAnswer>('sides/parley-apply.process.ts', task);
              await check(url);
              return { figures: { rate } };
            }),
          'redis-cli --pipe': () =>
            onFreshRedis(async (redis) => {
              const started = performance.now();
              await pipe(file, redis.url);
              const rate = (events / (performance.now() - started)) * 1000;
              await check(redis.url);
              return { figures: { rate } };
            }),
        },
        cleanUp: () => rm(folder, { recursive: true, force: true }),
      };
    },
  };
}

async function onFreshRedis(work: (redis: { url: string }) => Promise<Sample>): Promise<Sample> {
  const redis = await startTestRedis();
  try {
    return await work(redis);
  } finally {
    await redis.stop();
  }
}

/**
 * Applies once, and records the final keys of Redis as commands.
 * @returns their digest
 */
async function recordFinalKeys(task: Omit<ApplyTask, 'redisUrl'>, file: string): Promise<string> {
  const redis = await startTestRedis();
  try {
    await askOnce<ApplyAnswer>('sides/parley-apply.process.ts', { ...task, redisUrl: redis.url });
    const client = connectRedis(redis.url);
    await waitForRedis(client, 60_000);
    const dump = await dumpReadModels(client);
    client.close();
    if (Object.keys(dump).length === 0) throw new Error('nothing was applied');
    await writeFile(
      file,
      Object.entries(dump)
        .flatMap(([key, value]) => commandsOf(key, value))
        .join(''),
    );
    return digestOfDump(dump);
  } finally {
    await redis.stop();
  }
}

async function digestAt(url: string): Promise<string> {
  const client = connectRedis(url);
  try {
    await waitForRedis(client, 60_000);
    return digestOfDump(await dumpReadModels(client));
  } finally {
    client.close();
  }
}

/** One command per string, and per member of a hash or sorted set: a write without batching. */
function commandsOf(key: string, value: unknown): string[] {
  if (typeof value === 'string') return [resp(['SET', key, value])];
  if (!Array.isArray(value)) throw new TypeError(`no command for ${key}`);
  const list: unknown[] = value;
  if (Array.isArray(list[0])) return list.map((pair) => resp(['HSET', key, ...(pair as [string, string])]));
  return list.flatMap((member, at) =>
    at % 2 === 0 ? [resp(['ZADD', key, String(list[at + 1]), String(member)])] : [],
  );
}

function resp(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}

async function pipe(file: string, url: string): Promise<void> {
  const { hostname, port, password } = new URL(url);
  const cli = spawn('redis-cli', ['-h', hostname, '-p', port, '--pipe'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, REDISCLI_AUTH: password },
  });
  let output = '';
  cli.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  createReadStream(file, { highWaterMark: 1 << 20 }).pipe(cli.stdin);
  await once(cli, 'close');
  if (!output.includes('errors: 0')) throw new Error(`redis-cli: ${output}`);
}
