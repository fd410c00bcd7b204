/** The import of a large file by the code of `npx parley import`, against appends of the same events. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import type { Benchmark, Sample } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface ImportTask {
  readonly file: string;
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
}

export interface ReplayTask {
  /** The log after an import, and the empty one that its events are appended to. */
  readonly from: string;
  readonly to: string;
}

export interface ImportAnswer {
  readonly messages: number;
  /** Messages per second. */
  readonly rate: number;
  readonly cpuMicros: number;
}

const MESSAGES = 100_000;
const GENERATOR = join(import.meta.dirname, '../../docs/samples/generate.ts');

export interface ImportedStores {
  readonly file: string;
  readonly messages: number;
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  stop(): Promise<void>;
}

/** Generates a file of conversations with an assistant, and imports it. */
export async function importOnce(amount: number): Promise<ImportedStores> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-import-'));
  const wanted = String(Math.round(MESSAGES * amount));
  await promisify(execFile)(process.execPath, [GENERATOR, '--messages', wanted, '--output', folder]);
  const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  const urls = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
  const file = join(folder, 'assistant.jsonl');
  const { messages } = await askOnce<ImportAnswer>('sides/parley-import.process.ts', { file, ...urls });
  return {
    file,
    messages,
    ...urls,
    async stop() {
      await Promise.all([eventStore.stop(), redis.stop(), rm(folder, { recursive: true, force: true })]);
    },
  };
}

export const importBenchmark: Benchmark = {
  name: 'import',
  rows: [
    {
      title: 'import of a generated file; official client appending a conversation at a time',
      ours: 'parley',
      theirs: 'official',
      figure: 'rate',
      unit: 'messages/s',
      goal: { atLeast: 0.5 },
    },
  ],
  async prepare({ amount }) {
    const imported = await importOnce(amount);
    const check = ({ messages, rate, cpuMicros }: ImportAnswer): Sample => {
      if (messages !== imported.messages) throw new Error(`${messages} messages instead of ${imported.messages}`);
      return { figures: { rate, cpuMicros } };
    };
    return {
      sides: {
        async parley() {
          const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
          try {
            const task: ImportTask = { file: imported.file, eventstoreUrl: eventStore.url, redisUrl: redis.url };
            return check(await askOnce<ImportAnswer>('sides/parley-import.process.ts', task));
          } finally {
            await Promise.all([eventStore.stop(), redis.stop()]);
          }
        },
        async official() {
          const eventStore = await startTestEventStore({ mode: 'process' });
          try {
            const task: ReplayTask = { from: imported.eventstoreUrl, to: eventStore.url };
            return check(await askOnce<ImportAnswer>('sides/official-replay.process.ts', task));
          } finally {
            await eventStore.stop();
          }
        },
      },
      cleanUp: () => imported.stop(),
    };
  },
};
