/**
 * The log: ports of the event store, of the feed of its events and of consumer groups, their adapters for EventStoreDB and
 * for the embedded event store of this process, and codecs between stored and typed events.
 *
 *     const { store, feed, close } = await connectEventStore({ url: 'esdb://127.0.0.1:2113?tls=false' });
 *     await store.append('channel-1', NO_EVENTS, [{ id, type, data: codec.encode(event), metadata }]);
 *     for await (const stored of store.readStream('channel-1')) codec.decode(stored);
 *     for await (const item of feed.subscribe({ from: 'start', streamPrefixes: ['channel-'], signal })) …
 *
 * Needs EventStoreDB 21.10 or newer; 23.10 or newer for feeds, as older ones never send `caughtUp`.
 */
import type { EmbeddedLog } from '#libs/platform/embedded-log/index.ts';
import type { ConnectionOptions } from './connection.ts';
import { EmbeddedGroups } from './consumer-groups.embedded.ts';
import type { ConsumerGroups } from './consumer-groups.ts';
import type { EventStoreDbFeedOptions } from './event-feed.eventstoredb.ts';
import type { LogFeed } from './event-feed.ts';
import { ForeignEvents } from './event-metadata.ts';
import { EmbeddedEvents } from './embedded-events.ts';
import { EmbeddedFeed } from './event-feed.embedded.ts';
import { EmbeddedEventStore } from './event-store.embedded.ts';
import type { EventStore, ForeignReason } from './event-store.ts';
import { ServedGroups } from './group-server.ts';
import { StoreClock } from './store-clock.ts';

export type { ConsumerGroups, ConsumerGroupStatus, Delivery } from './consumer-groups.ts';
export { composeCodecs, defineEvents, encodeMetadata, textOf, upcast } from './event-codec.ts';
export type { EventCodec, EventOf } from './event-codec.ts';
export type {
  FeedItem,
  FeedOptions,
  LogFeed,
  LogStart,
  ReadCheckpoints,
  PartitionCheckpoint,
  PartitionedFeed,
  PartitionEnd,
} from './event-feed.ts';
export { checkFeedOptions, DEFAULT_MAX_BATCH } from './event-feed.ts';
export type { AppendResult, EventStore, EventToAppend, ReadStreamOptions, StoredEvent } from './event-store.ts';
export { actorIn, withoutForeignContent } from './event-metadata.ts';
export { eventIdentity, type EventIdentity, holdsEvent, identityOf, type WitnessedLog } from './holds-event.ts';
export { jsonBytesOf } from './json-bytes.ts';
export { comparePositions, decodePosition, encodePosition } from './position.ts';

export { StoreClock } from './store-clock.ts';

export interface EventStoreOptions extends ConnectionOptions, EventStoreDbFeedOptions {
  /** Called about once a minute while this process's clock is too far ahead of the event store's; see `StoreClock`. */
  readonly onClockAhead?: (aheadMs: number) => void;
  /** The event store at the URL, if it is in this process. */
  readonly embedded?: EmbeddedLog | undefined;
}

export interface EventStoreClients {
  readonly store: EventStore;
  readonly feed: LogFeed;
  readonly groups: ConsumerGroups;
  readonly clock: StoreClock;
  /** How many events of other applications this process has read and skipped. */
  readonly foreign: ReadonlyMap<ForeignReason, number>;
  /** Ends all calls within about a second. The same as `store.close()`. */
  close(): Promise<void>;
}

/**
 * Opens a connection, which connects at its first call and reconnects.
 *
 * @throws Error for an invalid URL, whose password is never quoted
 */
export async function connectEventStore(options: EventStoreOptions): Promise<EventStoreClients> {
  const { embedded, onClockAhead } = options;
  const { store, feed, groups, foreign } = embedded
    ? embeddedAdapters(embedded, options)
    : await clientAdapters(options);
  return {
    store,
    feed,
    groups: new ServedGroups(groups, options),
    clock: new StoreClock(store, onClockAhead),
    foreign: foreign.counts,
    close: () => store.close(),
  };
}

function embeddedAdapters(log: EmbeddedLog, options: EventStoreOptions) {
  const foreign = new ForeignEvents(options.onForeign);
  const events = new EmbeddedEvents(log, foreign);
  return {
    store: new EmbeddedEventStore(events),
    feed: new EmbeddedFeed(events, options),
    groups: new EmbeddedGroups(events),
    foreign,
  };
}

/** Loads the official client and gRPC, which an embedded event store does without, only here. */
async function clientAdapters(options: EventStoreOptions) {
  const [{ EventStoreConnection }, { EventStoreDbStore }, { EventStoreDbFeed }, { EventStoreDbGroups }] =
    await Promise.all([
      import('./connection.ts'),
      import('./event-store.eventstoredb.ts'),
      import('./event-feed.eventstoredb.ts'),
      import('./consumer-groups.eventstoredb.ts'),
    ]);
  const connection = new EventStoreConnection(options);
  return {
    store: new EventStoreDbStore(connection),
    feed: new EventStoreDbFeed(connection, options),
    groups: new EventStoreDbGroups(connection, options.livenessMs),
    foreign: connection.foreign,
  };
}
