/** Resident memory of all processes of a Parley within a small limit of the system, while it takes posts as fast as it can. */
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { memoryGroup, type MemoryGroup } from '#test/support/memory-group.ts';

import type { Benchmark, Row, Sample, Scale } from './benchmark.ts';

const LIMIT_MIB = 512;
const MIB = 1024 ** 2;
const WRITERS = 64;
/** Posts by the kilobytes of each; two items of 120 KB are nearly the largest body. */
const POSTS = { 4: 8_000, 12: 3_000, 40: 1_200, 240: 200 } as const;
const SIZES = Object.keys(POSTS).map(Number) as (keyof typeof POSTS)[];
const SAMPLE_MS = 100;
const MAIN = join(import.meta.dirname, '../../services/cli/main.ts');
const KEY = 'key-of-the-load_0123456789-0123456789-0123456789';

const row = (size: keyof typeof POSTS): Row => ({
  title: `resident memory at most, all processes, within ${LIMIT_MIB} MiB: ${POSTS[size]} posts of ${size} KB by ${WRITERS} writers`,
  ours: 'parley',
  theirs: 'limit',
  figure: `of${size}`,
  unit: 'MiB',
  // The rest is the kernel's: sockets, page tables, and some of the log's pages.
  goal: { atMost: 0.9 },
});

export const postsMemoryBenchmark: Benchmark = {
  name: 'posts-memory',
  rows: SIZES.map(row),
  async prepare() {
    const limit = Object.fromEntries(SIZES.map((size) => [`of${size}`, LIMIT_MIB]));
    return {
      sides: { parley: measure, limit: async () => ({ figures: limit }) },
      cleanUp: async () => undefined,
    };
  },
};

async function measure({ amount }: Scale): Promise<Sample> {
  const figures: Record<string, number> = {};
  const remarks: string[] = [];
  for (const size of SIZES) {
    const group = memoryGroup(LIMIT_MIB * MIB);
    if (group === null) return { figures, remarks: ['needs root and control groups of Linux'] };
    const { peak, refused } = await withinGroup(group, size, Math.round(POSTS[size] * amount));
    figures[`of${size}`] = peak / MIB;
    if (refused > 0) remarks.push(`${size} KB: ${refused} requests were refused and sent again`);
  }
  return { figures, remarks };
}

/** @throws Error if the system ends a process for memory */
async function withinGroup(group: MemoryGroup, size: number, posts: number) {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-posts-'));
  const limits = { RATE_LIMIT_PER_KEY: '0', RATE_LIMIT_PER_ADDRESS: '0', LOG_LEVEL: 'info' };
  const env = { ...process.env, ...limits, PORT: '0', DATA_DIR: join(folder, 'data'), PARLEY_BOOTSTRAP_KEY: KEY };
  const child = group.spawn(process.execPath, [MAIN, 'standalone'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const exit = once(child, 'exit');
  let peak = 0;
  const sampling = setInterval(() => (peak = Math.max(peak, group.resident())), SAMPLE_MS);
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let output = '';
      child.stdout?.on('data', (chunk: Buffer) => {
        output = `${output}${chunk}`.slice(-10_000);
        const found = /(http:\/\/127\.0\.0\.1:\d+)/.exec(output)?.[1];
        if (found !== undefined) resolve(found);
      });
      void exit.then(() => reject(new Error(`Parley ended\n${output}`)));
    });
    const refused = await load(`${url}/api/v1/channels`, size, posts);
    if (group.kills() > 0) throw new Error(`the system ended a process for memory: posts of ${size} KB`);
    return { peak, refused };
  } finally {
    clearInterval(sampling);
    child.kill('SIGTERM');
    await exit;
    await group.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns the number of requests that were refused with 503 and sent again */
async function load(api: string, size: number, posts: number): Promise<number> {
  let [next, refused] = [0, 0];
  const post = async (path: string, body: object): Promise<unknown> => {
    const headers = { authorization: KEY, 'content-type': 'application/json' };
    for (;;) {
      const answer = await fetch(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      if (answer.status === 200) return answer.json();
      if (answer.status !== 503) throw new Error(`${answer.status}: ${await answer.text()}`);
      await answer.arrayBuffer();
      refused += 1;
      await pause(Number(answer.headers.get('retry-after') ?? 1) * 1_000);
    }
  };
  const { id } = (await post('', { name: 'Load' })) as { id: string };
  const items = Math.ceil(size / 120);
  const item = () => ({ type: 'text', text: randomBytes((size * 500) / items).toString('hex') });
  const writer = async (): Promise<void> => {
    while (next++ < posts) await post(`/${id}/interactions`, { content: Array.from({ length: items }, item) });
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
  return refused;
}
