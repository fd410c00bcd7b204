/** A rebuild of the read models against reading the same log through the official client and dropping the events. */
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import type { Benchmark } from './benchmark.ts';
import type { LogShape } from './channel-log.ts';
import { askOnce } from './child-process.ts';

export interface RebuildTask {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
}

export interface RebuildAnswer {
  readonly count: number;
  readonly rate: number;
  readonly cpuMicros: number;
}

const SHAPE: LogShape = { events: 60_000, eventsPerChannel: 40, active: 64 };

export const rebuildBenchmark: Benchmark = {
  name: 'rebuild',
  rows: [
    {
      title: 'rebuild, parsing and folding included',
      ours: 'parley',
      theirs: 'official',
      figure: 'rate',
      unit: 'events/s',
      goal: { atLeast: 0.8 },
    },
  ],
  async prepare({ amount }) {
    const shape = { ...SHAPE, events: Math.round(SHAPE.events * amount) };
    const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
    await askOnce('sides/fill-log.process.ts', { eventstoreUrl: eventStore.url, shape });
    const side = (file: string) => async () => {
      const task: RebuildTask = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
      const { count, rate, cpuMicros } = await askOnce<RebuildAnswer>(file, task);
      if (count !== shape.events) throw new Error(`${count} events instead of ${shape.events}`);
      return { figures: { rate, cpuMicros } };
    };
    return {
      sides: {
        parley: side('sides/parley-rebuild.process.ts'),
        official: side('sides/official-read.process.ts'),
      },
      async cleanUp() {
        await Promise.all([eventStore.stop(), redis.stop()]);
      },
    };
  },
};
