import {
  DeadlineExceededError,
  MaxAppendSizeExceededError,
  NO_STREAM,
  StreamNotFoundError,
  binaryEvent,
  jsonEvent,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { appendPaths, collect, numberedEvents, range, rejectionOf, uniqueName, useEventStore } from './support.ts';

const MIB = 1024 * 1024;

describe.each(appendPaths)('limits of $path', ({ options }) => {
  const store = useEventStore();
  const append = (stream: string, bytes: number, metadata?: Uint8Array) =>
    store.client.appendToStream(
      stream,
      binaryEvent({ type: 'size', data: Buffer.alloc(bytes), ...(metadata ? { metadata } : {}) }),
      { ...options },
    );
  /** The server's limit, from its error for an append above every default. */
  const limit = async () => {
    const error = await rejectionOf(append(uniqueName('size'), 2 * MIB));
    if (!(error instanceof MaxAppendSizeExceededError)) throw error;
    return error.maxAppendSize;
  };

  test('one event above the maximum append size is refused with that size, and nothing is written', async () => {
    const stream = uniqueName('size');
    const error = await rejectionOf(append(stream, 2 * MIB));
    expect(error).toBeInstanceOf(MaxAppendSizeExceededError);
    expect(await limit()).toBeGreaterThan(0);
    expect(await rejectionOf(collect(store.client.readStream(stream)))).toBeInstanceOf(StreamNotFoundError);
  });

  test('many small events above the maximum append size together are refused, and nothing is written', async () => {
    const stream = uniqueName('size');
    const events = range(1_200).map(() => binaryEvent({ type: 'size', data: Buffer.alloc(1_000) }));
    const error = await rejectionOf(store.client.appendToStream(stream, events, { ...options }));
    expect(error).toBeInstanceOf(MaxAppendSizeExceededError);
    await store.client.appendToStream(stream, numberedEvents(1), { expectedRevision: NO_STREAM });
  });

  test('exactly the maximum append size is accepted, one byte more is not', async () => {
    const size = await limit();
    const stream = uniqueName('size');
    await append(stream, size);
    expect(await rejectionOf(append(stream, size + 1))).toBeInstanceOf(MaxAppendSizeExceededError);
    const [read] = await collect(store.client.readStream(stream));
    expect(read?.event?.data).toHaveLength(size);
  });

  test('metadata does not count, as in release 23.10', async () => {
    const size = await limit();
    const metadata = Uint8Array.from(Buffer.alloc(100_000, 1));
    const stream = uniqueName('size');
    await append(stream, size, metadata);
    const [read] = await collect(store.client.readStream(stream));
    expect(read?.event?.metadata).toHaveLength(metadata.length);
  });

  test('other appends continue after a refusal', async () => {
    const stream = uniqueName('size');
    const [refused, accepted] = await Promise.allSettled([append(stream, 2 * MIB), append(uniqueName('size'), 10)]);
    expect(refused.status).toBe('rejected');
    expect(accepted.status).toBe('fulfilled');
  });

  test.each([
    ['', ''],
    [', also when it is too large', 'x'.repeat(500)],
  ])('an append after its deadline is refused%s', async (_what, text) => {
    const events = range(8_000).map((n) => jsonEvent({ type: 'late', data: { n, text } }));
    // The client fixes the deadline first; encoding so many events takes longer than 1 ms.
    const append = store.client.appendToStream(uniqueName('deadline'), events, {
      ...options,
      deadline: 1,
    });
    expect(await rejectionOf(append)).toBeInstanceOf(DeadlineExceededError);
  });
});
