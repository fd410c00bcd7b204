import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { describeEventFeed } from './contract.ts';

for (const adapter of ['the official client', 'the embedded event store']) {
  describeEventFeed(adapter, async () => {
    const server = await startTestEventStore();
    const embedded = adapter === 'the official client' ? undefined : server.local;
    const { store, feed, close } = await connectEventStore({ url: server.url, embedded });
    return {
      feed,
      store,
      interrupt: () => server.restart(),
      async stop() {
        await close();
        await server.stop();
      },
    };
  });
}
