import { BACKWARDS, END, jsonEvent } from '@eventstore/db-client';
import { beforeAll, describe, expect, test } from 'vitest';
import { collect, eventOf, linkTo, numberedEvents, positionOf, record, uniqueName, useEventStore } from './support.ts';

describe('links', () => {
  const store = useEventStore();
  const target = uniqueName('link-target');
  const links = uniqueName('links');

  beforeAll(async () => {
    await store.client.appendToStream(target, numberedEvents(4));
    await store.client.appendToStream(links, [linkTo(target, 2, { $causedBy: 'test' }), linkTo(target, 0)]);
  });

  test('are delivered unresolved by default', async () => {
    const [read] = await collect(store.client.readStream(links));
    expect(read?.link).toBeUndefined();
    expect(read?.event).toMatchObject({ type: '$>', streamId: links, revision: 0n, metadata: { $causedBy: 'test' } });
    expect(Buffer.from(read?.event?.data as Uint8Array).toString()).toBe(`2@${target}`);
  });

  test('are delivered with their target when resolved', async () => {
    const [read, second] = await collect(store.client.readStream(links, { resolveLinkTos: true }));
    const [linked] = await collect(store.client.readStream(target, { fromRevision: 2n, maxCount: 1 }));
    expect(read?.event).toEqual(linked?.event);
    expect(read?.link).toMatchObject({ type: '$>', streamId: links, revision: 0n, metadata: { $causedBy: 'test' } });
    expect(second?.event).toMatchObject({ streamId: target, revision: 0n });
    expect(second?.link).toMatchObject({ revision: 1n });
  });

  test('resolve backwards too', async () => {
    const read = await collect(
      store.client.readStream(links, { resolveLinkTos: true, direction: BACKWARDS, fromRevision: END }),
    );
    expect(read.map(({ event }) => event?.revision)).toEqual([0n, 2n]);
  });

  test('events that are not links have no link', async () => {
    const read = await collect(store.client.readStream(target, { resolveLinkTos: true }));
    expect(read).toHaveLength(4);
    expect(read.every(({ link }) => link === undefined)).toBe(true);
  });

  test('resolve in $all', async () => {
    const stream = uniqueName('links');
    const fromPosition = positionOf(await store.client.appendToStream(stream, linkTo(target, 1)));
    const [resolved] = await collect(store.client.readAll({ fromPosition, resolveLinkTos: true, maxCount: 1 }));
    expect(resolved?.event).toMatchObject({ streamId: target, revision: 1n });
    expect(resolved?.link).toMatchObject({ streamId: stream, position: fromPosition });
    const [plain] = await collect(store.client.readAll({ fromPosition, maxCount: 1 }));
    expect(plain?.link).toBeUndefined();
    expect(plain?.event).toMatchObject({ streamId: stream, type: '$>' });
  });

  test('resolve in subscriptions, in history and live', async () => {
    const stream = uniqueName('links');
    await store.client.appendToStream(stream, linkTo(target, 3));
    const recording = record(store.client.subscribeToStream(stream, { resolveLinkTos: true }));
    try {
      await recording.delivered(1);
      await store.client.appendToStream(stream, linkTo(target, 1));
      const read = await recording.delivered(2);
      expect(read.map(({ event, link }) => [event?.streamId, event?.revision, link?.revision])).toEqual([
        [target, 3n, 0n],
        [target, 1n, 1n],
      ]);
    } finally {
      await recording.stop();
    }
  });

  test('to a stream whose name has an at sign', async () => {
    const named = `${uniqueName('link')}@2@x`;
    await store.client.appendToStream(named, numberedEvents(2));
    const stream = uniqueName('links');
    await store.client.appendToStream(stream, linkTo(named, 1));
    const [read] = await collect(store.client.readStream(stream, { resolveLinkTos: true }));
    expect(read && eventOf(read)).toMatchObject({ streamId: named, revision: 1n });
  });

  test.each([
    ['a stream that never was', async () => linkTo(uniqueName('nowhere'), 0)],
    ['a revision that is not there', async () => linkTo(target, 99)],
    [
      'a soft-deleted stream',
      async () => {
        const gone = uniqueName('gone');
        await store.client.appendToStream(gone, numberedEvents(1));
        await store.client.deleteStream(gone);
        return linkTo(gone, 0);
      },
    ],
    [
      'a tombstoned stream',
      async () => {
        const gone = uniqueName('gone');
        await store.client.appendToStream(gone, numberedEvents(1));
        await store.client.tombstoneStream(gone);
        return linkTo(gone, 0);
      },
    ],
    [
      'a truncated event',
      async () => {
        const short = uniqueName('short');
        await store.client.appendToStream(short, numberedEvents(3));
        await store.client.setStreamMetadata(short, { truncateBefore: 2 });
        return linkTo(short, 0);
      },
    ],
  ])('to %s: the link is delivered without an event, and the read continues', async (_, broken) => {
    const stream = uniqueName('links');
    await store.client.appendToStream(stream, [await broken(), linkTo(target, 0)]);
    const read = await collect(store.client.readStream(stream, { resolveLinkTos: true }));
    expect(read).toHaveLength(2);
    expect(read[0]?.event).toBeUndefined();
    expect(read[0]?.link).toMatchObject({ type: '$>', streamId: stream, revision: 0n });
    expect(read[1]?.event).toMatchObject({ streamId: target, revision: 0n });
  });

  test('a link is an ordinary event of its stream', async () => {
    const stream = uniqueName('links');
    const result = await store.client.appendToStream(stream, [jsonEvent({ type: 'a', data: {} }), linkTo(target, 0)]);
    expect(result.nextExpectedRevision).toBe(1n);
    const read = await collect(store.client.readStream(stream, { resolveLinkTos: true }));
    expect(read.map(({ event, link }) => (link ?? event)?.revision)).toEqual([0n, 1n]);
  });
});
