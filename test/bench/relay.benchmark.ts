/**
 * The relay of a log to Kafka, from reading it to the broker's acknowledgement, against kafkajs given the messages.
 */
import { newId } from '#libs/kernel/ids.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestKafkaProcess } from '#test/support/kafka/broker.ts';

import type { Benchmark, Sample } from './benchmark.ts';
import type { LogShape } from './channel-log.ts';
import { cpuSecondsOf, startChild } from './child-process.ts';

export interface RelayTask {
  readonly eventstoreUrl: string;
  readonly brokers: readonly string[];
  /** Of unused topics. */
  readonly prefix: string;
  /** Whether the public topic is written as well. */
  readonly writesPublicTopic: boolean;
}

export interface RelayAnswer {
  /** Of the log; each is a message of its topic. */
  readonly events: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

const SHAPE: LogShape = { events: 50_000, eventsPerChannel: 100, active: 64 };

const row = (title: string, ours: string) => ({ title, ours, theirs: 'kafkajs', figure: 'rate', unit: 'events/s' });

export const relayBenchmark: Benchmark = {
  name: 'relay',
  rows: [
    { ...row('relay of the log to Kafka', 'relay'), goal: { atLeast: 0.7 } },
    row('the same, with the public topic', 'relay-public'),
  ],
  async prepare({ amount }) {
    const shape = { ...SHAPE, events: Math.round(SHAPE.events * amount) };
    const [eventStore, broker] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestKafkaProcess()]);
    const filling = startChild('sides/fill-log.process.ts');
    await filling.ask<object>({ eventstoreUrl: eventStore.url, shape }).finally(() => filling.stop());
    const side = (file: string, writesPublicTopic: boolean) => async (): Promise<Sample> => {
      const child = startChild(file);
      try {
        const setup = { eventstoreUrl: eventStore.url, brokers: broker.brokers, writesPublicTopic };
        const pass = (): Promise<RelayAnswer> => child.ask<RelayAnswer>({ ...setup, prefix: `bench-${newId()}` });
        // The first warms up the code of both processes.
        await pass();
        const before = await cpuSecondsOf(broker.pid() ?? 0);
        const { events, seconds, cpuSeconds } = await pass();
        if (events !== shape.events) throw new Error(`${events} events were sent instead of ${shape.events}`);
        const cpuOfBroker = (await cpuSecondsOf(broker.pid() ?? 0)) - before;
        return { figures: { rate: events / seconds, cpuMicros: (cpuSeconds * 1e6) / events, cpuOfBroker } };
      } finally {
        await child.stop();
      }
    };
    return {
      sides: {
        relay: side('sides/parley-relay.process.ts', false),
        'relay-public': side('sides/parley-relay.process.ts', true),
        kafkajs: side('sides/kafkajs-send.process.ts', false),
      },
      async cleanUp() {
        await Promise.all([eventStore.stop(), broker.stop()]);
      },
    };
  },
};
