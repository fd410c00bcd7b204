/** Appends: whole commands (decide, append, apply to the read model, answer) against appends by the official client. */
import { EventStoreDBClient } from '@eventstore/db-client';

import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import type { AppendAnswer, AppendTask } from './appended-event.ts';
import type { Benchmark, Sample, Scale } from './benchmark.ts';
import { askOnce } from './child-process.ts';

interface AppendBenchmark {
  readonly name: string;
  readonly title: string;
  readonly writers: number;
  readonly batch: number;
  readonly goal: number;
}

export const appendBenchmarks: readonly Benchmark[] = [
  appendBenchmark({
    name: 'append-hot',
    title: 'commands of 64 writers on one channel; official client in batches of 100',
    writers: 64,
    batch: 100,
    goal: 0.7,
  }),
  appendBenchmark({
    name: 'append-one',
    title: 'commands of one writer, one at a time; official client one at a time',
    writers: 1,
    batch: 1,
    goal: 0.8,
  }),
];

function appendBenchmark({ name, title, writers, batch, goal }: AppendBenchmark): Benchmark {
  return {
    name,
    rows: [{ title, ours: 'parley', theirs: 'official', figure: 'rate', unit: 'events/s', goal: { atLeast: goal } }],
    async prepare() {
      const side =
        (file: string) =>
        ({ seconds, warmUpSeconds }: Scale) =>
          onFreshStores((stores) => measure(file, { ...stores, writers, streams: 1, batch, seconds, warmUpSeconds }));
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

/** Every run of every side starts on an empty log, so that none works on what another left. */
async function onFreshStores(
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
  const { stored, bytes } = await lastOf(task.eventstoreUrl, stream);
  if (stored !== events) throw new Error(`${events} events were acknowledged, ${stored} are stored`);
  return { figures: { rate, cpuMicros, bytesOfEvent: bytes } };
}

/** How many events a stream has, and the size of the last one's data and metadata. */
async function lastOf(eventstoreUrl: string, stream: string): Promise<{ stored: number; bytes: number }> {
  const client = EventStoreDBClient.connectionString(eventstoreUrl);
  const read = client.readStream(stream, { direction: 'backwards', fromRevision: 'end', maxCount: 1 });
  try {
    for await (const { event } of read) {
      if (event === undefined) continue;
      const bytes = JSON.stringify(event.data).length + JSON.stringify(event.metadata).length;
      return { stored: Number(event.revision) + 1, bytes };
    }
    return { stored: 0, bytes: 0 };
  } finally {
    await client.dispose();
  }
}
