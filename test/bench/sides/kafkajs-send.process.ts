/**
 * Their side of the relay: kafkajs sends the same messages as a relay, prepared before, in requests of the same size.
 */
import type { Message } from 'kafkajs';

import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { LogMessages } from '#libs/platform/kafka/index.ts';
import { plainKafka } from '#test/support/kafka/plain-kafka.ts';

import { answerTasks } from '../child-process.ts';
import type { RelayAnswer, RelayTask } from '../relay.benchmark.ts';

/** As in `relay.ts`. */
const MOST_CHARACTERS = 512 * 1024;
const PARTITIONS = 12;

answerTasks<RelayTask, RelayAnswer>(async ({ eventstoreUrl, brokers, prefix }) => {
  const requests = await messagesOf(eventstoreUrl);
  const topic = `${prefix}.log`;
  const kafka = plainKafka(brokers);
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = [{ name: 'max.message.bytes', value: `${4 * 1024 * 1024}` }];
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: PARTITIONS, configEntries }] });
  await admin.disconnect();
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const cpu = process.cpuUsage();
  const began = performance.now();
  let events = 0;
  for (const messages of requests) {
    await producer.send({ topic, messages, acks: -1 });
    events += messages.length;
  }
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  await producer.disconnect();
  return { events, seconds, cpuSeconds: (user + system) / 1e6 };
});

async function messagesOf(eventstoreUrl: string): Promise<Message[][]> {
  const { feed, close } = await connectEventStore({ url: eventstoreUrl });
  const messages = new LogMessages('a secret of this run');
  const abort = new AbortController();
  const requests: Message[][] = [];
  let room = 0;
  for await (const item of feed.subscribe({ from: 'start', streamPrefixes: 'all', signal: abort.signal })) {
    if (item.kind === 'caught-up') break;
    if (item.kind !== 'events') continue;
    for (const event of item.events) {
      const message = messages.encode(event);
      if (room < message.value.length) {
        requests.push([]);
        room = MOST_CHARACTERS;
      }
      requests.at(-1)?.push(message);
      room -= message.value.length;
    }
  }
  abort.abort();
  await close();
  return requests;
}
