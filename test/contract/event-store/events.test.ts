import { binaryEvent, jsonEvent, type EventData } from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { appendPaths, collect, eventOf, numberedEvents, range, uniqueName, useEventStore } from './support.ts';

describe.each(appendPaths)('events of $path come back as they were written', ({ options }) => {
  const store = useEventStore();
  const roundTrip = async (event: EventData, stream = uniqueName('event')) => {
    await store.client.appendToStream(stream, event, { ...options });
    const [read] = await collect(store.client.readStream(stream));
    if (!read) throw new Error('nothing was read');
    return eventOf(read);
  };

  test('id, type, stream and revision', async () => {
    const stream = uniqueName('event');
    const event = jsonEvent({ type: 'Round-trip.v1', data: { a: 1 } });
    expect(await roundTrip(event, stream)).toMatchObject({
      id: event.id,
      type: 'Round-trip.v1',
      streamId: stream,
      revision: 0n,
      isJson: true,
    });
  });

  test.each([
    ['an object', { text: 'Ünï — 🎈\u0000', nested: [1, 2.5, null, { deep: true }], empty: {} }],
    ['a string', 'CC ‐ 1830'],
    ['an array', [1, 'two', null]],
    ['an empty object', {}],
  ])('JSON data: %s', async (_, data) => {
    const event = await roundTrip(jsonEvent({ type: 'json', data }));
    expect(event.isJson).toBe(true);
    expect(event.data).toEqual(data);
  });

  test('binary data: every byte value, and it is not JSON', async () => {
    const data = Uint8Array.from(range(256));
    const event = await roundTrip(binaryEvent({ type: 'binary', data }));
    expect(event.isJson).toBe(false);
    expect(Buffer.from(event.data as Uint8Array)).toEqual(Buffer.from(data));
  });

  test('binary data: empty', async () => {
    const event = await roundTrip(binaryEvent({ type: 'empty', data: new Uint8Array(0) }));
    expect(event.isJson).toBe(false);
    expect(event.data).toHaveLength(0);
  });

  test.each([
    ['JSON', jsonEvent({ type: 'with-metadata', data: {}, metadata: { $correlationId: 'c', own: [1, '2'] } })],
    [
      'binary',
      binaryEvent({ type: 'with-metadata', data: Buffer.from('x'), metadata: { $correlationId: 'c', own: [1, '2'] } }),
    ],
  ])('JSON metadata of a %s event', async (_, event) => {
    expect((await roundTrip(event)).metadata).toEqual({ $correlationId: 'c', own: [1, '2'] });
  });

  test('binary metadata', async () => {
    const metadata = Uint8Array.from([0, 255, 128, 7]);
    const event = await roundTrip(jsonEvent({ type: 'with-metadata', data: {}, metadata }));
    expect(Buffer.from(event.metadata as Uint8Array)).toEqual(Buffer.from(metadata));
  });

  test('no metadata', async () => {
    expect((await roundTrip(jsonEvent({ type: 'bare', data: {} }))).metadata).toBeUndefined();
  });

  test.each([
    ['letters of other scripts', '어학연구소/ด้้้้้็็็็็้้้้้/0️⃣'],
    ['spaces, slashes, quotes and percent signs', ' a/b\\c "d" \'e\' %2F ?x=1&y=2#z '],
    ['at signs and colons', 'user@example.org::group'],
    ['control characters', 'tab\tnewline\nend'],
    ['one character beyond the basic plane', '😾'],
    ['200 characters', 'x'.repeat(200)],
  ])('a stream name with %s', async (_, name) => {
    const stream = `${uniqueName('name')}${name}`;
    const event = await roundTrip(jsonEvent({ type: 'named', data: { name } }), stream);
    expect(event.streamId).toBe(stream);
    const neighbour = await store.client.appendToStream(`${stream}.`, numberedEvents(1), { ...options });
    expect(neighbour.nextExpectedRevision).toBe(0n);
  });

  test('stream names are case-sensitive', async () => {
    const stream = uniqueName('case');
    await store.client.appendToStream(`${stream}-a`, numberedEvents(2), { ...options });
    const other = await store.client.appendToStream(`${stream}-A`, numberedEvents(1), { ...options });
    expect(other.nextExpectedRevision).toBe(0n);
  });

  test.each(['Ereignis-größer', '事件/类型', 'with space', 'a:b@c.v1', 't'.repeat(300)])(
    'event type %s',
    async (type) => {
      expect((await roundTrip(jsonEvent({ type, data: {} }))).type).toBe(type);
    },
  );

  test('created is the time of the append, and never decreases within a stream', async () => {
    const stream = uniqueName('created');
    for (let i = 0; i < 3; i++) await store.client.appendToStream(stream, numberedEvents(2), { ...options });
    const times = (await collect(store.client.readStream(stream))).map((read) => eventOf(read).created.getTime());
    expect(times).toHaveLength(6);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    // The clock of a remote server may differ.
    for (const time of times) expect(Math.abs(time - Date.now())).toBeLessThan(5 * 60_000);
  });

  test('every event has its own position, with equal commit and prepare', async () => {
    const stream = uniqueName('position');
    await store.client.appendToStream(stream, numberedEvents(5), { ...options });
    const positions = (await collect(store.client.readStream(stream))).map((read) => eventOf(read).position);
    expect(new Set(positions.map((position) => position?.prepare)).size).toBe(5);
    for (const position of positions) expect(position?.commit).toBeGreaterThanOrEqual(position?.prepare ?? -1n);
  });
});
