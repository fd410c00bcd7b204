/** A consumer of a group that is slower than its source holds a bounded number of bytes, not only of events. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  EventStoreDBClient,
  jsonEvent,
  type PersistentSubscriptionToStreamResolvedEvent,
  persistentSubscriptionToStreamSettingsFromDefaults,
  START,
} from '@eventstore/db-client';
import { expect, it } from 'vitest';

import { startEmbeddedEventStore } from '#infra/embedded-eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';

it('has no more than its share of bytes in flight, and gets every event', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-in-flight-'));
  const server = await startEmbeddedEventStore({ dataDir, insecure: true, maxInFlightBytes: 100_000 });
  const client = EventStoreDBClient.connectionString(server.url);
  try {
    const event = () => jsonEvent({ type: 'Posted', data: { text: 'x'.repeat(30_000) } });
    await client.appendToStream('large', Array.from({ length: 20 }, event));
    const settings = persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START });
    await client.createPersistentSubscriptionToStream('large', 'slow', settings);
    const subscription = client.subscribeToPersistentSubscriptionToStream('large', 'slow', { bufferSize: 1_000 });
    const held: PersistentSubscriptionToStreamResolvedEvent[] = [];
    let most = 0;
    subscription.on('data', (resolved) => {
      held.push(resolved);
      most = Math.max(most, held.length);
    });
    for (let answered = 0; answered < 20;) {
      await eventually(() => held.length > 0);
      // The server has sent what it sends before an answer.
      await eventually(async () => {
        const [consumer] = (await client.getPersistentSubscriptionToStreamInfo('large', 'slow')).connections;
        expect(consumer?.inFlightMessages).toBe(held.length);
      });
      const next = held.splice(0, 2);
      await subscription.ack(...next);
      answered += next.length;
    }
    // The fourth one exceeds the limit.
    expect(most).toBe(4);
    await subscription.unsubscribe();
  } finally {
    await client.dispose();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});
