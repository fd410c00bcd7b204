/** Memory of interactions in Redis: their documents and each kind of index, against the length of their JSON. */
import { Redis } from 'ioredis';

import { READ_MODELS_PREFIX } from '#libs/platform/readmodel/index.ts';

import type { Benchmark, Row, Sample } from './benchmark.ts';
import { importOnce } from './import.benchmark.ts';

/** The kinds of keys of a channel, by their suffixes, and their descriptions. */
const KINDS = {
  documents: [/}:interactions$/, 'documents'],
  spans: [/:spans$/, 'index: spans'],
  children: [/:children$/, 'index: the tree'],
  all: [/:sequences:all$/, 'index: all of a channel'],
  roles: [/:sequences:role=/, 'index: by role'],
  turns: [/:sequences:turn=/, 'index: by turn'],
  other: [/./, 'the channel itself, its history, lists of channels'],
} as const;

type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];

const row = (figure: string, title: string, atMost?: number): Row => ({
  title: `Redis, bytes for an interaction: ${title}`,
  ours: 'parley',
  theirs: 'JSON',
  figure,
  unit: 'B',
  ...(atMost !== undefined && { goal: { atMost } }),
});

export const redisMemoryBenchmark: Benchmark = {
  name: 'redis-memory',
  rows: [
    ...NAMES.map((name) => row(name, KINDS[name][1], name === 'documents' ? 1.2 : undefined)),
    row('used', 'all, as INFO has it'),
  ],
  async prepare({ amount }) {
    const imported = await importOnce(amount);
    // Deterministic, so one run is enough; every figure of the other side is the length of the JSON.
    const { parley, json } = await lookInto(imported.redisUrl, imported.messages);
    return {
      sides: { parley: async () => parley, JSON: async () => json },
      cleanUp: () => imported.stop(),
    };
  },
};

async function lookInto(url: string, messages: number): Promise<{ parley: Sample; json: Sample }> {
  const redis = new Redis(url);
  const bytes: Record<Kind, number> = { documents: 0, spans: 0, children: 0, all: 0, roles: 0, turns: 0, other: 0 };
  let [json, documents] = [0, 0];
  for await (const keys of redis.scanStream({ match: `${READ_MODELS_PREFIX}*`, count: 1_000 })) {
    const found = keys as string[];
    const sizes = await Promise.all(found.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)));
    for (const [index, key] of found.entries()) {
      const kind = NAMES.find((name) => KINDS[name][0].test(key)) ?? 'other';
      bytes[kind] += sizes[index] ?? 0;
      if (kind !== 'documents') continue;
      const stored = await redis.hvalsBuffer(key);
      documents += stored.length;
      json += stored.reduce((sum, document) => sum + document.length, 0);
    }
  }
  if (documents !== messages) throw new Error(`${documents} documents of ${messages} messages`);
  const used = Number(/used_memory_dataset:(\d+)/.exec(await redis.info('memory'))?.[1]);
  redis.disconnect();
  const each = Object.fromEntries(NAMES.map((name) => [name, bytes[name] / messages]));
  const length = json / messages;
  return {
    parley: { figures: { ...each, used: used / messages } },
    json: { figures: Object.fromEntries([...NAMES, 'used'].map((name) => [name, length])) },
  };
}
