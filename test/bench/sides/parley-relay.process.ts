/** Our side of the relay: reads the log, signs, sends, and ends when Kafka has acknowledged all of it. */
import { comparePositions, connectEventStore } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { composePublicMessages } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';

import { answerTasks } from '../child-process.ts';
import type { RelayAnswer, RelayTask } from '../relay.benchmark.ts';

const OFTEN = { timeoutMs: 600_000, everyMs: 2 };

answerTasks<RelayTask, RelayAnswer>(async ({ eventstoreUrl, brokers, prefix, writesPublicTopic }) => {
  const { feed, store, close } = await connectEventStore({ url: eventstoreUrl });
  const kafka = new KafkaConnection({ brokers, log: silentLog });
  const head = await feed.head();
  let events = 0;
  const relay = new Relay({
    feed,
    store,
    kafka,
    messages: new LogMessages('a secret of this run'),
    publicMessages: writesPublicTopic ? composePublicMessages((error) => console.error(error)) : undefined,
    topics: logTopics(prefix),
    onProblem: (error) => console.error(error),
    onSent: (sent) => (events += sent),
  });
  const abort = new AbortController();
  const ended = relay.run(abort.signal);
  // Creates the topics and becomes the active relay before the measurement.
  await eventually(() => relay.progress.phase === 'active', OFTEN);
  const cpu = process.cpuUsage();
  const began = performance.now();
  await eventually(() => {
    const { position } = relay.progress;
    return position !== null && head !== null && comparePositions(position, head) >= 0;
  }, OFTEN);
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  abort.abort();
  await ended;
  await kafka.close();
  await close();
  return { events, seconds, cpuSeconds: (user + system) / 1e6 };
});
