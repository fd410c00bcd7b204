/** Their side of appends: the official client and nothing else, at exact revisions as ours. */
import { setTimeout as delay } from 'node:timers/promises';
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';

import { metadataOf } from '#libs/platform/commands/index.ts';
import { eventIdOf, newId } from '#libs/kernel/ids.ts';

import { appendedEvent, benchChannel, metadataFor } from '../appended-event.ts';
import type { AppendAnswer, AppendTask } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';

answerTasks<AppendTask, AppendAnswer>(async ({ eventstoreUrl, batch, seconds, warmUpSeconds }) => {
  const client = EventStoreDBClient.connectionString(eventstoreUrl);
  const channel = benchChannel();
  const stream = `channel-${channel.id}`;
  const eventOf = (type: string, data: object) => {
    const commandId = newId();
    const metadata = metadataOf({ commandId, ...metadataFor(commandId) });
    return jsonEvent({ id: eventIdOf(commandId, 0), type, data: { ...data }, metadata: { ...metadata } });
  };
  await client.appendToStream(stream, eventOf('ChannelCreated.v1', channel), { expectedRevision: 'no_stream' });

  let revision = 0n;
  const end = new AbortController();
  async function write(): Promise<void> {
    while (!end.signal.aborted) {
      const events = Array.from({ length: batch }, (_, index) => {
        const { type, data } = appendedEvent(Number(revision) + 1 + index);
        return eventOf(type, data);
      });
      const result = await client.appendToStream(stream, events, { expectedRevision: revision });
      revision = result.nextExpectedRevision;
    }
  }
  const all = write();
  await Promise.race([all, delay(warmUpSeconds * 1000)]);
  const [before, started] = [revision, performance.now()];
  await Promise.race([all, delay(seconds * 1000)]);
  const rate = (Number(revision - before) / (performance.now() - started)) * 1000;
  end.abort();
  await all;
  return { rate, stream, events: Number(revision) + 1 };
});
