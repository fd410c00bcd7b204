/** Contract of `ConsumerGroups`, on each adapter, and for members of both in one group. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectEventStore, type EventStoreClients, type Delivery } from '#libs/platform/eventstore/index.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { withForeignClient } from '#test/support/foreign-events.ts';
import { logEvent } from '#test/support/log-events.ts';
import { jsonEvent } from '@eventstore/db-client';

let server: TestEventStore;
const adapters = new Map<string, EventStoreClients>();
beforeAll(async () => {
  server = await startTestEventStore();
  const backoff = { firstMs: 10, maxMs: 50 };
  adapters.set('the official client', await connectEventStore({ url: server.url, backoff }));
  adapters.set(
    'the embedded event store',
    await connectEventStore({ url: server.url, embedded: server.local, backoff }),
  );
});
afterAll(async () => {
  for (const { close } of adapters.values()) await close();
  await server.stop();
});

const members: { leave(): Promise<void> }[] = [];
afterEach(async () => {
  for (const { leave } of members.splice(0)) await leave();
});

const connected = (adapter: string): EventStoreClients => {
  const found = adapters.get(adapter);
  if (found === undefined) throw new Error(adapter);
  return found;
};

/** A type, and thereby a group, of its own. */
const newType = (): string => `T${newId().replaceAll('-', '')}.v1`;

function join({ groups }: EventStoreClients, type: string, { bufferSize = 1_000, messageTimeoutMs = 60_000 } = {}) {
  const stop = new AbortController();
  const got: Delivery[] = [];
  const kinds: string[] = [];
  const group = { name: `group-${type}`, types: [type], from: 'start' as const, messageTimeoutMs };
  const consuming = (async () => {
    for await (const item of groups.consume(group, { bufferSize, signal: stop.signal })) {
      kinds.push(item.kind);
      if (item.kind === 'delivery') got.push(item.delivery);
    }
  })();
  const member = {
    got,
    kinds,
    numbers: () => got.map(({ event }) => Reflect.get(Object(event.data), 'n') as number),
    async leave() {
      stop.abort();
      await consuming;
    },
  };
  members.push(member);
  return member;
}

async function append(
  { store }: EventStoreClients,
  type: string,
  stream: string,
  count: number,
  from = 0,
): Promise<void> {
  const events = Array.from({ length: count }, (_, n) => ({ ...logEvent({ n: from + n }), type }));
  await store.append(stream, from === 0 ? NO_EVENTS : streamRevision(from - 1), events);
}

const range = (count: number) => Array.from({ length: count }, (_, n) => n);
const newStream = () => `entity-${newId()}`;
const both = ['the official client', 'the embedded event store'];

describe.each(both)('a consumer group through %s', (adapter) => {
  test('delivers old and new events of its types in order, and none again after their acknowledgement', async () => {
    const type = newType();
    const own = connected(adapter);
    const stream = newStream();
    await append(own, `${type}x`, newStream(), 1);
    await append(own, type, stream, 300);
    const first = join(own, type);
    await eventually(() => expect(first.numbers()).toEqual(range(300)));
    await append(own, type, stream, 10, 300);
    await eventually(() => expect(first.numbers()).toEqual(range(310)));
    expect(first.got[305]?.event).toMatchObject({ stream, revision: 305, type, data: { n: 305 } });
    for (const { acknowledge } of first.got) acknowledge();
    await eventually(async () =>
      expect(await own.groups.list(`group-${type}`)).toMatchObject([{ inFlight: 0, lag: 0 }]),
    );
    await first.leave();
    const second = join(own, type);
    await append(own, type, stream, 1, 310);
    await eventually(() => expect(second.numbers()).toEqual([310]));
  });

  test('redelivers the unanswered events of a member that leaves, and bounds those of each', async () => {
    const type = newType();
    const own = connected(adapter);
    const first = join(own, type, { bufferSize: 5 });
    await eventually(() => expect(first.kinds).toContain('joined'));
    await append(own, type, newStream(), 20);
    await eventually(() => expect(first.numbers()).toEqual(range(5)));
    first.got[0]?.acknowledge();
    await eventually(() => expect(first.numbers()).toEqual(range(6)));
    await first.leave();
    const second = join(own, type);
    await eventually(() => expect(second.numbers().toSorted((a, b) => a - b)).toEqual(range(20).slice(1)));
  });

  test('redelivers an event without an answer after the timeout', async () => {
    const type = newType();
    const own = connected(adapter);
    const member = join(own, type, { messageTimeoutMs: 100 });
    await append(own, type, newStream(), 1);
    await eventually(() => expect(member.got.length).toBeGreaterThan(2));
    expect(new Set(member.numbers())).toEqual(new Set([0]));
  });

  test('parks with the reason, and delivers parked events again on request', async () => {
    const type = newType();
    const own = connected(adapter);
    const stream = newStream();
    const member = join(own, type);
    await append(own, type, stream, 2);
    await eventually(() => expect(member.got).toHaveLength(2));
    member.got[0]?.park('no use');
    member.got[1]?.acknowledge();
    const name = `group-${type}`;
    await eventually(async () => expect(await own.groups.list(name)).toMatchObject([{ parked: 1, inFlight: 0 }]));
    const reason: unknown = expect.stringContaining('no use');
    for (const other of both)
      expect(await connected(other).groups.parked(name, 10)).toEqual([
        { stream, revision: 0, type, reason, parkedAt: expect.any(String) },
      ]);
    await own.groups.retryParked(name);
    await eventually(() => expect(member.numbers()).toEqual([0, 1, 0]));
    member.got[2]?.acknowledge();
    await eventually(async () => expect(await own.groups.list(name)).toMatchObject([{ parked: 0, inFlight: 0 }]));
    await expect(own.groups.retryParked('group-of-nobody')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('skips foreign events', async () => {
    const type = newType();
    const own = connected(adapter);
    const stream = newStream();
    await withForeignClient(server.url, (client) =>
      client.appendToStream(stream, jsonEvent({ type, data: { n: -1 } })),
    );
    await own.store.append(stream, streamRevision(0), [{ ...logEvent({ n: 1 }), type }]);
    const member = join(own, type);
    await eventually(() => expect(member.numbers()).toEqual([1]));
    member.got[0]?.acknowledge();
    await eventually(async () => expect(await own.groups.list(`group-${type}`)).toMatchObject([{ inFlight: 0 }]));
  });

  test('joins again after the store has restarted, and loses nothing', async () => {
    const type = newType();
    const own = connected(adapter);
    const member = join(own, type);
    const stream = newStream();
    await append(own, type, stream, 3);
    await eventually(() => expect(member.numbers()).toEqual([0, 1, 2]));
    member.got[0]?.acknowledge();
    await server.restart();
    await eventually(() => own.store.ping());
    await append(own, type, stream, 1, 3);
    await eventually(() => expect(member.numbers()).toContain(3));
    const memberships = member.kinds.filter((kind) => kind !== 'delivery');
    expect([memberships[0], memberships[1], memberships.at(-1)]).toEqual(['joined', 'left', 'joined']);
    await eventually(() => expect(member.numbers().slice(3)).toEqual(expect.arrayContaining([1, 2, 3])));
  });
});

test('members of both adapters share the streams of a group, and take over from each other', async () => {
  const type = newType();
  const [remote, embedded] = both.map(connected);
  if (remote === undefined || embedded === undefined) throw new Error('two adapters');
  const here = join(embedded, type);
  await eventually(() => expect(here.kinds).toEqual(['joined']));
  const there = join(remote, type);
  await eventually(async () => expect(await embedded.groups.list(`group-${type}`)).toMatchObject([{ members: 2 }]));
  const streams = Array.from({ length: 20 }, newStream);
  await Promise.all(streams.map((stream) => append(embedded, type, stream, 5)));
  await eventually(() => expect(here.got.length + there.got.length).toBe(100));
  for (const member of [here, there]) {
    expect(member.got.length).toBeGreaterThan(0);
    for (const stream of new Set(member.got.map(({ event }) => event.stream))) {
      const inStream = member.got.filter(({ event }) => event.stream === stream);
      expect(inStream.map(({ event }) => event.revision)).toEqual(range(5));
    }
  }
  const left = there.got.length;
  for (const { acknowledge } of here.got) acknowledge();
  const before = here.got.length;
  await there.leave();
  await eventually(() => expect(here.got.length).toBe(before + left));
});
