// The state that a group keeps when its server ends. The contract suite cannot
// stop its server.
import {
  END,
  EventStoreDBClient,
  PARK,
  START,
  jsonEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  persistentSubscriptionToStreamSettingsFromDefaults,
  streamNameFilter,
  type PersistentSubscriptionToStreamResolvedEvent,
  type PersistentSubscriptionToStreamSettings,
} from '@eventstore/db-client';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newId } from '#libs/kernel/ids.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

const GROUP = 'workers';

let store: TestEventStoreProcess;
let client: EventStoreDBClient;
/** Of one test. */
let stream: string;

beforeAll(async () => {
  store = await startTestEventStore({ mode: 'process' });
  client = EventStoreDBClient.connectionString(store.url);
});
afterAll(async () => {
  await client?.dispose();
  await store?.stop();
});
beforeEach(() => {
  stream = `orders-${newId()}`;
});

const range = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n);

async function append(count: number, from = 0, to = stream): Promise<void> {
  const events = range(count, from).map((index) => jsonEvent({ type: 'numbered', data: { index } }));
  await client.appendToStream(to, events);
}

function indexOf({ event }: { event?: { data: unknown } }): number {
  const data = event?.data;
  if (typeof data === 'object' && data !== null && 'index' in data && typeof data.index === 'number') return data.index;
  throw new Error('not a numbered event');
}

async function createGroup(settings: Partial<PersistentSubscriptionToStreamSettings>): Promise<void> {
  const all = persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START, ...settings });
  await client.createPersistentSubscriptionToStream(stream, GROUP, all);
}

const info = () => client.getPersistentSubscriptionToStreamInfo(stream, GROUP);

type Event = PersistentSubscriptionToStreamResolvedEvent;

/** Connects; `handle` gets each event. An error from the end of the server is recorded, not thrown. */
function consume(handle: (event: Event, subscription: ReturnType<typeof connect>) => Promise<void>) {
  const seen: number[] = [];
  const subscription = connect();
  let ended = false;
  subscription.on('error', () => (ended = true));
  subscription.on('end', () => (ended = true));
  subscription.on('data', (event) => {
    seen.push(indexOf(event));
    handle(event, subscription).catch(() => (ended = true));
  });
  return { seen, subscription, hasEnded: () => ended };
}
const connect = () => client.subscribeToPersistentSubscriptionToStream(stream, GROUP, { bufferSize: 20 });

/** A new server process, and a new client. */
async function restarted(end: () => Promise<void>): Promise<void> {
  await end();
  await client.dispose();
  await store.restart();
  client = EventStoreDBClient.connectionString(store.url);
}

test('a clean stop keeps settings, progress and parked events, also below the checkpoint limits', async () => {
  await append(10);
  await createGroup({ maxRetryCount: 7 });
  const first = consume((event, subscription) =>
    indexOf(event) === 2 ? subscription.nack(PARK, 'later', event) : subscription.ack(event),
  );
  await eventually(async () => {
    const { stats } = await info();
    expect(first.seen).toHaveLength(10);
    expect(stats).toMatchObject({ totalInFlightMessages: 0, parkedMessageCount: 1n });
  });
  await restarted(async () => {});
  await append(2, 10);
  const { settings, stats } = await info();
  expect(settings).toMatchObject({ maxRetryCount: 7, startFrom: START });
  expect(stats).toMatchObject({ parkedMessageCount: 1n, lastCheckpointedEventRevision: 9n });
  const second = consume((event, subscription) => subscription.ack(event));
  await eventually(() => second.seen.length === 2);
  await client.replayParkedMessagesToStream(stream, GROUP);
  await eventually(() => expect(second.seen).toEqual([10, 11, 2]));
  await second.subscription.unsubscribe();
});

test('after kill -9 a group resumes from its checkpoint and loses nothing', async () => {
  // Enough events for the kill to interrupt their delivery.
  await append(3000);
  await createGroup({ checkPointLowerBound: 1, checkPointUpperBound: 10, checkPointAfter: 100 });
  const runs: number[][] = [];
  const checkpoint = async () => (await info()).stats.lastCheckpointedEventRevision ?? -1n;
  const rounds = IN_CAMPAIGN ? 4 : 2;
  for (const round of range(rounds)) {
    const before = await checkpoint();
    const run = consume((event, subscription) => subscription.ack(event));
    await eventually(async () => (await checkpoint()) > before);
    const told = await checkpoint();
    await restarted(() => store.kill9());
    await eventually(run.hasEnded);
    expect(await checkpoint()).toBeGreaterThanOrEqual(told);
    runs.push(run.seen);
    await append(20, 3000 + round * 20);
  }
  const reached = Number(await checkpoint());
  const last = consume((event, subscription) => subscription.ack(event));
  await eventually(() => new Set([...runs.flat(), ...last.seen]).size === 3000 + rounds * 20);
  // Only events after the checkpoint are delivered again, in order.
  expect(last.seen[0]).toBeLessThanOrEqual(reached + 1);
  expect(last.seen.filter((index) => index <= reached)).toEqual([]);
  expect(last.seen).toEqual(last.seen.toSorted((a, b) => a - b));
  await last.subscription.unsubscribe();
});

test('an event that is parked stays parked after kill -9', async () => {
  await append(5);
  await createGroup({});
  consume((event, subscription) => subscription.nack(PARK, 'later', event));
  await eventually(async () => expect((await info()).stats.parkedMessageCount).toBe(5n));
  await restarted(() => store.kill9());
  expect((await info()).stats.parkedMessageCount).toBe(5n);
});

test('a replay that kill -9 interrupts can be repeated for the unhandled messages', async () => {
  await append(5);
  await createGroup({ checkPointLowerBound: 1, checkPointUpperBound: 1 });
  let replaying = false;
  const first = consume(async (event, subscription) => {
    if (!replaying) await subscription.nack(PARK, 'later', event);
    else if (indexOf(event) < 2) await subscription.ack(event);
  });
  await eventually(async () => expect((await info()).stats.parkedMessageCount).toBe(5n));
  replaying = true;
  await client.replayParkedMessagesToStream(stream, GROUP);
  await eventually(() => first.seen.length === 10);
  // The acknowledged ones leave the parked stream.
  await eventually(async () => {
    const links = [];
    for await (const link of client.readStream(`$persistentsubscription-${stream}::${GROUP}-parked`)) links.push(link);
    expect(links).toHaveLength(3);
  });
  await restarted(() => store.kill9());
  expect((await info()).stats.parkedMessageCount).toBe(3n);
  const second = consume((event, subscription) => subscription.ack(event));
  await client.replayParkedMessagesToStream(stream, GROUP);
  await eventually(() => expect(second.seen.filter((index) => index >= 2)).toEqual(expect.arrayContaining([2, 3, 4])));
  await eventually(async () => expect((await info()).stats.parkedMessageCount).toBe(0n));
  await second.subscription.unsubscribe();
});

test('after kill -9 a group from the end keeps that position, and one on $all its filter', async () => {
  await append(3);
  await createGroup({ startFrom: END });
  await append(2, 3);
  const settings = persistentSubscriptionToAllSettingsFromDefaults({ startFrom: START });
  await client.createPersistentSubscriptionToAll(GROUP, settings, {
    filter: streamNameFilter({ prefixes: ['wanted-'] }),
  });
  await restarted(() => store.kill9());
  await append(1, 5);
  await append(3, 100, 'other');
  await append(2, 0, 'wanted-1');
  const { seen, subscription } = consume((event, own) => own.ack(event));
  const onAll = client.subscribeToPersistentSubscriptionToAll(GROUP);
  const wanted: number[] = [];
  onAll.on('error', (error) => expect.unreachable(String(error)));
  onAll.on('data', (event) => wanted.push(indexOf(event)));
  await eventually(() => {
    expect(seen).toEqual([3, 4, 5]);
    expect(wanted).toHaveLength(2);
  });
  expect(wanted).toEqual([0, 1]);
  await Promise.all([subscription.unsubscribe(), onAll.unsubscribe()]);
});
