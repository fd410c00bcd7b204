/** Their side of appends: only the official client, at exact revisions as ours. */
import { setTimeout as delay } from 'node:timers/promises';
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';

import { derivedId, type EntityId, eventIdOf, newId } from '#libs/kernel/ids.ts';
import { metadataOf } from '#libs/platform/commands/index.ts';

import { type AppendAnswer, appendedEvent, type AppendTask, benchChannel, metadataFor } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';

answerTasks<AppendTask, AppendAnswer>(async ({ eventstoreUrl, what, streams, batch, seconds, warmUpSeconds }) => {
  const client = EventStoreDBClient.connectionString(eventstoreUrl);
  const end = new AbortController();
  let count = 0;

  async function write(): Promise<{ stream: string; events: number }> {
    const channel = benchChannel();
    const stream = `channel-${channel.id}`;
    const created = eventOf(newId(), { type: 'ChannelCreated.v1', data: channel });
    const first = newId();
    const root = derivedId(first, 'span');
    let { nextExpectedRevision } = await client.appendToStream(stream, created, { expectedRevision: 'no_stream' });
    while (!end.signal.aborted) {
      const events = Array.from({ length: batch }, (_, index) => {
        const n = Number(nextExpectedRevision) + 1 + index;
        const commandId = n === 1 ? first : newId();
        return eventOf(commandId, appendedEvent(what, n, commandId, root));
      });
      const appended = await client.appendToStream(stream, events, { expectedRevision: nextExpectedRevision });
      nextExpectedRevision = appended.nextExpectedRevision;
      count += batch;
    }
    return { stream, events: Number(nextExpectedRevision) + 1 };
  }

  const all = Promise.all(Array.from({ length: streams }, write));
  await Promise.race([all, delay(warmUpSeconds * 1000)]);
  const [before, started, cpu] = [count, performance.now(), process.cpuUsage()];
  await Promise.race([all, delay(seconds * 1000)]);
  const measured = count - before;
  const { user, system } = process.cpuUsage(cpu);
  const rate = (measured / (performance.now() - started)) * 1000;
  end.abort();
  const [first] = await all;
  return { rate, cpuMicros: (user + system) / measured, stream: first?.stream ?? '', events: first?.events ?? 0 };
});

function eventOf(commandId: EntityId, { type, data }: { readonly type: string; readonly data: object }) {
  const metadata = metadataOf({ commandId, ...metadataFor(commandId) });
  return jsonEvent({ id: eventIdOf(commandId, 0), type, data: { ...data }, metadata: { ...metadata } });
}
