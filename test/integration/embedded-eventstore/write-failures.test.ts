// What happens when the disk takes no more. A limit on the size of files stands
// in for a full disk: the same call fails at the same place.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient, UnavailableError, UnknownError, jsonEvent } from '@eventstore/db-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startStoreProcess } from './event-store-process.ts';
import type { StoreProcess } from './event-store-process.ts';

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

const large = () => jsonEvent({ type: 'large', data: { padding: 'x'.repeat(500_000) } });

/** Appends until one fails; how many were acknowledged, and the error. */
async function fill(options: { credentials?: typeof credentials }): Promise<{ count: number; error: unknown }> {
  for (let count = 0; count < 100; count++) {
    try {
      await client.appendToStream('large', large(), options);
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

test('an append that does not fit on disk fails and says so; reads go on; nothing acknowledged is lost', async () => {
  const { count, error } = await fill({});
  expect(error).toBeInstanceOf(UnknownError);
  expect(error).toHaveProperty('message', expect.stringContaining('could not write to disk'));
  expect(count).toBeGreaterThan(0);
  expect(await countOf('large')).toBe(count);

  // With room again it goes on where it stopped, without the append that failed.
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

test('after a failed append smaller ones still succeed, at the right revision', async () => {
  const { count } = await fill({});
  const result = await client.appendToStream('large', jsonEvent({ type: 'small', data: {} }));
  expect(result.nextExpectedRevision).toBe(BigInt(count));
  expect(await countOf('large')).toBe(count + 1);
});
