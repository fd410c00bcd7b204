import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient } from '@eventstore/db-client';
import { open } from 'lmdb';
import { describe, expect, test } from 'vitest';
import { startTestEventStore } from '#test/support/event-store.ts';
import { rounds, roundsTimeoutMs } from '#test/support/rounds.ts';
import { type Acknowledged, appendUntilFailure, type LoadEvent, readBack, violations } from './acknowledged-writes.ts';
import { startStoreProcess } from './event-store-process.ts';

const ROUNDS = rounds(2);
const STREAMS = Array.from({ length: 8 }, (_, i) => `load-${i}`);

test(
  'kill -9 under load, again and again: every acknowledged event is there once, in order, none torn',
  { timeout: roundsTimeoutMs(120_000) },
  async () => {
    const store = await startTestEventStore({ mode: 'process' });
    const acknowledged: Acknowledged = new Map();
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const client = EventStoreDBClient.connectionString(store.url);
        // The crash is at a different time in each round.
        let left = 30 + Math.floor(Math.random() * 300);
        let killed: Promise<void> | undefined;
        const onAcknowledged = () => {
          if (--left === 0) killed = store.kill9();
        };
        await Promise.all(STREAMS.map((stream) => appendUntilFailure(client, stream, acknowledged, onAcknowledged)));
        await killed;
        expect(killed).toBeDefined();
        await client.dispose();
        await store.restart();

        const reader = EventStoreDBClient.connectionString(store.url);
        const found = await readBack(reader, STREAMS);
        await reader.dispose();
        expect(violations(acknowledged, found.streams)).toEqual([]);
        expect(found.all).toEqual(found.streams);
      }
      expect(acknowledged.size).toBe(STREAMS.length);
    } finally {
      await store.stop();
    }
  },
);

test('one event that is missing from the file is detected', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'event-store-loss-'));
  const acknowledged: Acknowledged = new Map();
  const killed = await startStoreProcess({ dataDir });
  const writer = EventStoreDBClient.connectionString(killed.url);
  let left = 20;
  await appendUntilFailure(writer, 'load-0', acknowledged, () => {
    if (--left === 0) void killed.end('SIGKILL');
  });
  await writer.dispose();
  await killed.end('SIGKILL');

  const file = open({ path: join(dataDir, 'eventstore', 'events.mdb'), overlappingSync: false });
  const index = file.openDB<Buffer, Buffer>('index', { encoding: 'binary', keyEncoding: 'binary' });
  const middle = [...index.getKeys()][10];
  expect(middle && index.removeSync(middle)).toBe(true);
  await file.close();

  const store = await startStoreProcess({ dataDir });
  const reader = EventStoreDBClient.connectionString(store.url);
  const found = await readBack(reader, ['load-0']);
  expect(violations(acknowledged, found.streams)).not.toEqual([]);
  expect(violations(acknowledged, found.all)).toEqual([]);
  await reader.dispose();
  await store.end('SIGTERM');
  await rm(dataDir, { recursive: true, force: true });
});

describe('the checker finds', () => {
  const acknowledged: Acknowledged = new Map([['load', 5]]);
  // Two appends: of two events and of three.
  const events: LoadEvent[] = [
    { n: 0, batch: 0, size: 2 },
    { n: 1, batch: 0, size: 2 },
    { n: 2, batch: 2, size: 3 },
    { n: 3, batch: 2, size: 3 },
    { n: 4, batch: 2, size: 3 },
  ];
  const check = (found: readonly LoadEvent[]) => violations(acknowledged, new Map([['load', [...found]]]));

  test('nothing wrong with a whole log, nor with appends whose acknowledgement was lost', () => {
    expect(check(events)).toEqual([]);
    expect(check([...events, { n: 5, batch: 5, size: 1 }])).toEqual([]);
  });
  test('a lost append', () => expect(check(events.slice(0, 2))).toContain('load: 5 acknowledged, 2 found'));
  test('a lost stream', () => expect(violations(acknowledged, new Map())).toContain('load: 5 acknowledged, 0 found'));
  test('a torn append', () => expect(check(events.slice(0, 4))).toContain('load: append 2 has 2 of 3 events'));
  test('an event lost in the middle', () =>
    expect(check(events.toSpliced(1, 1))).toContain('load: at 1 stands event 2'));
  test('a duplicate event', () =>
    expect(check(events.toSpliced(1, 0, events[0]!))).toContain('load: at 1 stands event 0'));
  test('two events in reverse order', () => {
    expect(check(events.toSpliced(0, 2, events[1]!, events[0]!))).toContain('load: at 0 stands event 1');
  });
});
