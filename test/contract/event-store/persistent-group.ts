// A group on a stream of its own, for tests of its consumers.
import {
  persistentSubscriptionToStreamSettingsFromDefaults,
  type PersistentSubscriptionToStreamResolvedEvent,
  type PersistentSubscriptionToStreamSettings,
  START,
} from '@eventstore/db-client';
import { numberedEvents, record, uniqueName, useEventStore } from './support.ts';

/** As a consumer gets it. */
export type Delivered = PersistentSubscriptionToStreamResolvedEvent;

/** Registers set-up and tear-down for the test file; `group` creates a stream with `events` events, and a group on it. */
export function useGroups() {
  const store = useEventStore();

  const group = async (events: number, settings: Partial<PersistentSubscriptionToStreamSettings> = {}) => {
    const stream = uniqueName('persistent');
    const name = uniqueName('group');
    if (events > 0) await store.client.appendToStream(stream, numberedEvents(events));
    await store.client.createPersistentSubscriptionToStream(
      stream,
      name,
      persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START, ...settings }),
    );
    const connect = (bufferSize = 10, onEvent?: (event: Delivered) => Promise<void> | void) => {
      const subscription = store.client.subscribeToPersistentSubscriptionToStream(stream, name, { bufferSize });
      return { subscription, recording: record(subscription, (event) => void onEvent?.(event)) };
    };
    /** A consumer that acknowledges everything. */
    const consume = (bufferSize = 10) => {
      const consumer = connect(bufferSize, (event) => consumer.subscription.ack(event));
      return consumer.recording;
    };
    return {
      stream,
      name,
      connect,
      consume,
      append: (count: number, firstIndex: number) =>
        store.client.appendToStream(stream, numberedEvents(count, 'persistent', firstIndex)),
      info: () => store.client.getPersistentSubscriptionToStreamInfo(stream, name),
    };
  };

  return { store, group };
}
