import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { describeEventFeed } from './contract.ts';

describeEventFeed('EventStoreDB', async () => {
  const server = await startTestEventStore();
  const { store, feed, close } = connectEventStore({ url: server.url });
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
