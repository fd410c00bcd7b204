// A writer repeats an append when it lost the response.
// The rules are those of the real server: exact for exact revisions, best effort
// (recent events only) for the conditions.
import {
  ANY,
  NO_STREAM,
  STREAM_EXISTS,
  WrongExpectedVersionError,
  type AppendExpectedRevision,
  type EventData,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { appendPaths, collect, numberedEvents, rejectionOf, uniqueName, useEventStore } from './support.ts';

describe.each(appendPaths)('idempotency of $path', ({ options }) => {
  const store = useEventStore();
  const append = (stream: string, events: EventData[], expectedRevision: AppendExpectedRevision) =>
    store.client.appendToStream(stream, events, { expectedRevision, ...options });
  const idsOf = async (stream: string) =>
    (await collect(store.client.readStream(stream))).map(({ event }) => event?.id);
  const ids = (...events: EventData[]) => events.map(({ id }) => id);

  test('no_stream: the same events again succeed with the original revision and position, and are stored once', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(3);
    const first = await append(stream, events, NO_STREAM);
    const again = await append(stream, events, NO_STREAM);
    expect(again).toEqual(first);
    expect(await idsOf(stream)).toEqual(ids(...events));
  });

  test('no_stream: still after other events were appended', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(3);
    const first = await append(stream, events, NO_STREAM);
    await append(stream, numberedEvents(4), 2n);
    expect(await append(stream, events, NO_STREAM)).toEqual(first);
    expect(await idsOf(stream)).toHaveLength(7);
  });

  test('exact revision behind the current one: the same events succeed with their original revision and position', async () => {
    const stream = uniqueName('idempotent');
    await append(stream, numberedEvents(2), NO_STREAM);
    const events = numberedEvents(2);
    const first = await append(stream, events, 1n);
    await append(stream, numberedEvents(1), 3n);
    expect(await append(stream, events, 1n)).toEqual(first);
    expect(await idsOf(stream)).toHaveLength(5);
  });

  test('exact revision behind the current one: the first of the written events alone also succeed', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(3);
    await append(stream, events, NO_STREAM);
    const again = await append(stream, events.slice(0, 2), NO_STREAM);
    expect(again.nextExpectedRevision).toBe(1n);
    expect(await idsOf(stream)).toHaveLength(3);
  });

  test.each([
    ['one id differs', (events: EventData[]) => [...events.slice(0, 2), ...numberedEvents(1)]],
    ['the order differs', (events: EventData[]) => events.toReversed()],
    ['more events come than were written', (events: EventData[]) => [...events, ...numberedEvents(1)]],
    ['they are the events of another revision', (events: EventData[]) => events.slice(1)],
  ])('exact revision behind the current one: wrong version when %s', async (_, changed) => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(3);
    await append(stream, events, NO_STREAM);
    const error = await rejectionOf(append(stream, changed(events), NO_STREAM));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(await idsOf(stream)).toEqual(ids(...events));
  });

  test('exact current revision: appended, even when the stream has the ids', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(1);
    await append(stream, events, NO_STREAM);
    const again = await append(stream, events, 0n);
    expect(again.nextExpectedRevision).toBe(1n);
    expect(await idsOf(stream)).toEqual(ids(...events, ...events));
  });

  test('exact revision ahead of the current one: wrong version, also for known events', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(1);
    await append(stream, events, NO_STREAM);
    expect(await rejectionOf(append(stream, events, 5n))).toBeInstanceOf(WrongExpectedVersionError);
  });

  test.each([ANY, STREAM_EXISTS] as const)('%s: recent events that are repeated are stored once', async (expected) => {
    const stream = uniqueName('idempotent');
    await append(stream, numberedEvents(1), NO_STREAM);
    const events = numberedEvents(3);
    const first = await append(stream, events, expected);
    const again = await append(stream, events, expected);
    expect(again.nextExpectedRevision).toBe(first.nextExpectedRevision);
    expect(again.position).toEqual(first.position);
    expect(await idsOf(stream)).toHaveLength(4);
  });

  test('any: known events again keep their original revision after others were appended', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(2);
    await append(stream, events, ANY);
    await append(stream, numberedEvents(3), ANY);
    expect((await append(stream, events, ANY)).nextExpectedRevision).toBe(1n);
    expect(await idsOf(stream)).toHaveLength(5);
  });

  test('any: known events mixed with new ones are a wrong version', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(2);
    await append(stream, events, ANY);
    const error = await rejectionOf(append(stream, [...events, ...numberedEvents(1)], ANY));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(await idsOf(stream)).toEqual(ids(...events));
  });

  test('any: events whose first id is new are appended', async () => {
    const stream = uniqueName('idempotent');
    const events = numberedEvents(1);
    await append(stream, events, ANY);
    await append(stream, [...numberedEvents(1), ...events], ANY);
    expect(await idsOf(stream)).toHaveLength(3);
  });

  test('an id is known per stream: the same event can be in two streams', async () => {
    const [one, other] = [uniqueName('idempotent'), uniqueName('idempotent')];
    const events = numberedEvents(1);
    await append(one, events, ANY);
    await append(other, events, ANY);
    expect(await idsOf(one)).toEqual(ids(...events));
    expect(await idsOf(other)).toEqual(ids(...events));
  });
});
