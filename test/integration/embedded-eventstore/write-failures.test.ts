// A full disk. A limit on the size of files simulates it: the same call fails at
// the same point.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  EventStoreDBClient,
  StreamNotFoundError,
  UnavailableError,
  UnknownError,
  jsonEvent,
} from '@eventstore/db-client';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { streamRevision } from '#libs/kernel/event.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { startStoreProcess, type StoreProcess } from './event-store-process.ts';

const LIMIT = "trap '' XFSZ; ulimit -f 8192; exec";
const credentials = { username: 'any', password: 'any' };

let dataDir: string;
let store: StoreProcess;
let client: EventStoreDBClient;

async function start(shell?: string): Promise<void> {
  store = await startStoreProcess({ dataDir, ...(shell === undefined ? {} : { shell }) });
  client = EventStoreDBClient.connectionString(store.url);
}

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'event-store-full-'));
  await start(LIMIT);
});
afterEach(async () => {
  await client.dispose();
  await store.end('SIGTERM');
  await rm(dataDir, { recursive: true, force: true });
});

const LARGE = 500_000;
const large = (bytes = LARGE) => jsonEvent({ type: 'large', data: { padding: 'x'.repeat(bytes) } });

/** Appends until one fails; returns the number of acknowledged appends and the error. */
async function fill(
  options: { credentials?: typeof credentials },
  bytes = LARGE,
): Promise<{ count: number; error: unknown }> {
  for (let count = 0; count < 1_000; count++) {
    try {
      await client.appendToStream('large', large(bytes), options);
    } catch (error) {
      return { count, error };
    }
  }
  throw new Error('the disk never was full');
}

async function countOf(stream: string): Promise<number> {
  let count = 0;
  for await (const _ of client.readStream(stream)) count++;
  return count;
}

test('an append that does not fit on disk fails with the reason; reads continue; no acknowledged append is lost', async () => {
  const { count, error } = await fill({});
  expect(error).toBeInstanceOf(UnknownError);
  expect(error).toHaveProperty('message', expect.stringContaining('could not write to disk'));
  expect(count).toBeGreaterThan(0);
  expect(await countOf('large')).toBe(count);

  // With space again it continues after the last acknowledged append.
  await client.dispose();
  await store.end('SIGTERM');
  await start();
  expect(await countOf('large')).toBe(count);
  const { nextExpectedRevision } = await client.appendToStream('large', large());
  expect(nextExpectedRevision).toBe(BigInt(count));
});

test('a unary append that does not fit on disk is UNAVAILABLE', async () => {
  const { count, error } = await fill({ credentials });
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error).toHaveProperty('message', expect.stringContaining('could not write to disk'));
  expect(await countOf('large')).toBe(count);
});

// Short commits are made on another thread than long ones.
test.each([LARGE, 20_000])(
  'after a failed append of %i bytes smaller ones still succeed, at the right revision',
  async (bytes) => {
    const { count } = await fill({}, bytes);
    const result = await client.appendToStream('large', jsonEvent({ type: 'small', data: {} }));
    expect(result.nextExpectedRevision).toBe(BigInt(count));
    expect(await countOf('large')).toBe(count + 1);

    await expect(client.appendToStream('new', large())).rejects.toThrow('could not write to disk');
    await expect(countOf('new')).rejects.toThrow(StreamNotFoundError);
    const first = await client.appendToStream('new', jsonEvent({ type: 'small', data: {} }), {
      expectedRevision: 'no_stream',
    });
    expect(first.nextExpectedRevision).toBe(0n);
  },
);

test('the health of a process reports failing appends until one succeeds again', async () => {
  const platform = await openPlatform({
    eventstoreUrl: store.url,
    redisUrl: 'redis://127.0.0.1:1',
    log: pino({ level: 'silent' }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret: 'a secret of this test only',
  });
  const health = () => platform.probes.find(({ name }) => name === 'event_store')?.check();
  const append = (padding: string, revision: number) => {
    const metadata = { organizationId: 'o', actor: { type: 'system' as const, id: 't' }, commandId: randomUUID() };
    const event = { id: randomUUID(), type: 'some', data: { padding }, metadata: metadata as never };
    return platform.store.append('some', streamRevision(revision), [event]);
  };
  try {
    let revision = -1;
    const full = async (): Promise<void> => {
      for (; revision < 100; revision++) await append('x'.repeat(500_000), revision);
    };
    await expect(full()).rejects.toMatchObject({
      code: 'outcome_unknown',
      message: 'The event store reported a failed write, which may still have been stored; the command may be repeated',
    });
    expect(await health()).toEqual({ ok: false, detail: { reason: 'The event store answers, but appends fail' } });
    expect(await append('small', revision)).toMatchObject({ kind: 'appended' });
    expect(await health()).toEqual({ ok: true });
  } finally {
    await platform.close();
  }
});
