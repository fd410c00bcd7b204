/**
 * Appends: full commands (decide, append, apply to the read model, answer) against appends by the official client.
 */
import { EventStoreDBClient } from '@eventstore/db-client';

import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import type { AppendAnswer, AppendTask, Written } from './appended-event.ts';
import type { Benchmark, Sample, Scale } from './benchmark.ts';
import { askOnce } from './child-process.ts';

interface AppendBenchmark {
  readonly name: string;
  readonly title: string;
  readonly what: Written;
  /** Commands of ours in flight on each channel. */
  readonly writers: number;
  readonly streams: number;
  /** Events in one append of theirs. */
  readonly batch: number;
  readonly goal?: number;
}

export const appendBenchmarks: readonly Benchmark[] = [
  appendBenchmark({
    name: 'append-hot',
    title: 'commands of 64 writers on one channel; official client in batches of 100',
    what: 'names',
    writers: 64,
    streams: 1,
    batch: 100,
    goal: 0.7,
  }),
  appendBenchmark({
    name: 'append-one',
    title: 'commands of one writer, one at a time; official client one at a time',
    what: 'names',
    writers: 1,
    streams: 1,
    batch: 1,
    goal: 0.8,
  }),
  appendBenchmark({
    name: 'post-one',
    title: 'interactions of one writer, one at a time; official client one at a time',
    what: 'posts',
    writers: 1,
    streams: 1,
    batch: 1,
    goal: 0.8,
  }),
  appendBenchmark({
    name: 'post-reply',
    title: 'interactions below another one, one at a time; official client one at a time',
    what: 'replies',
    writers: 1,
    streams: 1,
    batch: 1,
  }),
  appendBenchmark({
    name: 'post-hot',
    title: 'interactions of 64 writers on one channel; official client in batches of 100',
    what: 'posts',
    writers: 64,
    streams: 1,
    batch: 100,
    goal: 0.7,
  }),
  appendBenchmark({
    name: 'post-many',
    title: 'interactions of 64 writers on 64 channels; official client on 64 streams at once',
    what: 'posts',
    writers: 1,
    streams: 64,
    batch: 1,
  }),
];

function appendBenchmark({ name, title, goal, ...task }: AppendBenchmark): Benchmark {
  const row = { title, ours: 'parley', theirs: 'official', figure: 'rate', unit: 'events/s' };
  return {
    name,
    rows: [goal === undefined ? row : { ...row, goal: { atLeast: goal } }],
    async prepare() {
      const sizes = new Set<number>();
      const side =
        (file: string) =>
        ({ seconds, warmUpSeconds }: Scale) =>
          onFreshStores(async (stores) => {
            const sample = await measure(file, { ...stores, ...task, seconds, warmUpSeconds });
            sizes.add(sample.figures['bytesOfEvents'] ?? 0);
            if (sizes.size > 1) throw new Error(`the sides append events of different sizes: ${[...sizes].join(', ')}`);
            return sample;
          });
      return {
        sides: {
          parley: side('sides/parley-commands.process.ts'),
          official: side('sides/official-append.process.ts'),
        },
        cleanUp: async () => undefined,
      };
    },
  };
}

/** Every run of every side starts on an empty log, so that runs do not affect one another. */
export async function onFreshStores(
  work: (stores: { eventstoreUrl: string; redisUrl: string }) => Promise<Sample>,
): Promise<Sample> {
  const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  try {
    return await work({ eventstoreUrl: eventStore.url, redisUrl: redis.url });
  } finally {
    await Promise.all([eventStore.stop(), redis.stop()]);
  }
}

async function measure(file: string, task: AppendTask): Promise<Sample> {
  const { rate, cpuMicros, stream, events } = await askOnce<AppendAnswer>(file, task);
  const { stored, bytes } = await lookAt(task.eventstoreUrl, stream);
  if (stored !== events) throw new Error(`${events} events were acknowledged, ${stored} are stored`);
  return { figures: { rate, cpuMicros, bytesOfEvents: bytes } };
}

/** Count of events in whose size and content the sides are compared. */
const COMPARED = 10;

/** The count of events in a stream, and the size of the data and metadata of the first ones. */
async function lookAt(eventstoreUrl: string, stream: string): Promise<{ stored: number; bytes: number }> {
  const client = EventStoreDBClient.connectionString(eventstoreUrl);
  let [stored, bytes] = [0, 0];
  try {
    for await (const { event } of client.readStream(stream, { maxCount: COMPARED })) {
      bytes += Buffer.byteLength(JSON.stringify([event?.type, event?.data, event?.metadata]));
    }
    const newest = client.readStream(stream, { direction: 'backwards', fromRevision: 'end', maxCount: 1 });
    for await (const { event } of newest) stored = Number(event?.revision) + 1;
    return { stored, bytes };
  } finally {
    await client.dispose();
  }
}
