/** Their side of the import: its events from memory, one append per stream, as many at once as an import does. */
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';

import { answerTasks } from '../child-process.ts';
import type { ImportAnswer, ReplayTask } from '../import.benchmark.ts';

const AT_ONCE = 32;

answerTasks<ReplayTask, ImportAnswer>(async ({ from, to }) => {
  const streams = new Map<string, ReturnType<typeof jsonEvent>[]>();
  const source = EventStoreDBClient.connectionString(from);
  for await (const { event } of source.readAll()) {
    if (event?.isJson !== true || event.type.startsWith('$')) continue;
    const { id, type, data, metadata } = event;
    const copy = jsonEvent({ id, type, data: { ...Object(data) }, metadata: { ...Object(metadata) } });
    streams.set(event.streamId, [...(streams.get(event.streamId) ?? []), copy]);
  }
  await source.dispose();

  const client = EventStoreDBClient.connectionString(to);
  const waiting = streams.entries();
  let messages = 0;
  const cpu = process.cpuUsage();
  const started = performance.now();
  const work = async (): Promise<void> => {
    for (const [stream, events] of waiting) {
      await client.appendToStream(stream, events, { expectedRevision: 'no_stream' });
      messages += events.filter(({ type }) => type === 'InteractionPosted.v1').length;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { messages, rate: messages / seconds, cpuMicros: (user + system) / messages };
});
