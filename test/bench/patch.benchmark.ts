/** `PATCH /api/v1/channels/{id}` over HTTP against bare appends of the same events by the official client. */
import { startTestEventStore } from '#test/support/event-store.ts';

import type { AppendAnswer } from './appended-event.ts';
import type { Benchmark } from './benchmark.ts';
import { prepareChannels } from './channel-fixture.ts';
import { askOnce } from './child-process.ts';
import { loadHttp } from './load/http-load.ts';

interface PatchBenchmark {
  readonly name: string;
  readonly title: string;
  readonly connections: number;
  /** Whether all connections change the same channel. */
  readonly oneChannel: boolean;
  /** Events in one append of the official client. */
  readonly batch: number;
}

export const patchBenchmarks: readonly Benchmark[] = [
  patchBenchmark({
    name: 'patch',
    title: 'PATCH channel, one caller; official client one event at a time',
    connections: 1,
    oneChannel: true,
    batch: 1,
  }),
  patchBenchmark({
    name: 'patch-hot',
    title: 'PATCH of one channel by 64 callers; official client in batches of 100',
    connections: 64,
    oneChannel: true,
    batch: 100,
  }),
  patchBenchmark({
    name: 'patch-many',
    title: 'PATCH of 64 channels by 64 callers; official client on 64 streams, one event at a time',
    connections: 64,
    oneChannel: false,
    batch: 1,
  }),
];

function patchBenchmark({ name, title, connections, oneChannel, batch }: PatchBenchmark): Benchmark {
  return {
    name,
    rows: [{ title, ours: 'parley', theirs: 'official', figure: 'rate', unit: 'events/s' }],
    async prepare() {
      const { headers, paths, start, cleanUp } = await prepareChannels(oneChannel ? 1 : connections);
      const requests = Array.from({ length: connections }, (_, index) => ({
        method: 'PATCH',
        path: paths[index % paths.length] ?? '',
        headers,
        // As long as the names that the other side writes.
        body: JSON.stringify({ name: 'Support of order 00########' }),
      }));
      const streams = paths.length;
      return {
        sides: {
          async parley({ seconds, warmUpSeconds }) {
            const parley = await start();
            try {
              return await loadHttp(parley.pid, parley.url, { requests, seconds, warmUpSeconds });
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
