import { newId } from '#libs/kernel/ids.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestKafkaProcess } from '#test/support/kafka/broker.ts';
import { startChild } from './child-process.ts';
import type { RelayAnswer } from './relay.benchmark.ts';
const events = Number(process.env.N ?? 25000);
const [eventStore, broker] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestKafkaProcess()]);
const filling = startChild('sides/fill-log.process.ts');
await filling.ask<object>({ eventstoreUrl: eventStore.url, shape: { events, eventsPerChannel: 100, active: 64 } }).finally(() => filling.stop());
for (const file of ['sides/parley-relay.process.ts', 'sides/kafkajs-send.process.ts']) {
  const child = startChild(file, { execArgv: process.env.PROF ? ['--cpu-prof', '--cpu-prof-dir=/tmp/prof', '--cpu-prof-interval=500'] : [] });
  for (let i = 0; i < 4; i++) {
    const a = await child.ask<RelayAnswer>({ eventstoreUrl: eventStore.url, brokers: broker.brokers, told: process.env.TOLD === '1', prefix: `bench-${newId()}` });
    console.log(file, Math.round(a.events / a.seconds), '/s', Math.round(a.cpuSeconds * 1e6 / a.events), 'us cpu');
  }
  process.kill(child.pid, 'SIGINT');
  await new Promise((r) => setTimeout(r, 4000));
  await child.stop();
}
await Promise.all([eventStore.stop(), broker.stop()]);
process.exit(0);
