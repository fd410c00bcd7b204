/* A read from the end of a stream on needs no message to the thread of the event store while the stream does not change. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { jsonEvent } from '@eventstore/db-client';
import { type EventStoreWorker, startEventStoreWorker } from '#infra/embedded-eventstore/index.ts';
import { LocalLog } from '#infra/embedded-eventstore/local/local-log.ts';
import { StreamGone } from '#libs/kernel/faults.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import { connectEventStore, type EventStoreClients } from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';

let folder: string;
let worker: EventStoreWorker;
/** Of another process. */
let other: ReturnType<typeof connectClient>;
let clients: EventStoreClients;
const log = new LocalLog();
let sent = 0;
let stream: string;
let streams = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stream-ends-'));
  worker = await startEventStoreWorker({ dataDir: folder });
  const port = worker.localPort;
  const post = port.postMessage.bind(port);
  port.postMessage = (message: unknown) => {
    sent += 1;
    post(message);
  };
  log.attach(port);
  clients = await connectEventStore({ url: worker.url, embedded: log });
  other = connectClient(worker.url);
  await append('first', -1);
  await eventually(async () => {
    await read('first', 1);
    expect(log.isEnd('first', 1)).toBe(true);
  });
});
afterAll(async () => {
  await other?.dispose();
  await clients?.close();
  await worker?.stop();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  stream = `stream-${++streams}`;
  await append(stream, -1);
});

async function append(name: string, after: number): Promise<void> {
  const expected = after < 0 ? NO_EVENTS : streamRevision(after);
  expect(await clients.store.append(name, expected, [logEvent({}, 'tested')])).toMatchObject({ kind: 'appended' });
}

async function read(name: string, from: number): Promise<number[]> {
  const needs = streamRevision(from);
  const events = await Array.fromAsync(clients.store.readStream(name, { from: streamRevision(from), needs }));
  return events.map(({ revision }) => revision);
}

/** Messages of a read. */
async function messagesOf(from: number, expected: readonly number[]): Promise<number> {
  sent = 0;
  expect(await read(stream, from)).toEqual(expected);
  return sent;
}

test('the first read finds the end of a stream, and later ones from there on know it', async () => {
  expect(await messagesOf(1, [])).toBe(1);
  expect(await messagesOf(1, [])).toBe(0);
  expect(await messagesOf(7, [])).toBe(0);
  expect(await messagesOf(0, [0])).toBe(1);
  await append(stream, 0);
  expect(await messagesOf(1, [1])).toBe(1);
  expect(await messagesOf(2, [])).toBe(0);
  await append('other', -1);
  expect(await messagesOf(2, [])).toBe(0);
});

test('what another process appends is read as soon as that process knows it', async () => {
  for (let revision = 1; revision <= 20; revision++) {
    expect(await read(stream, revision)).toEqual([]);
    expect(log.isEnd(stream, revision)).toBe(true);
    await other.appendToStream(stream, jsonEvent({ type: 'tested', data: {} }));
    expect(await messagesOf(revision, [revision])).toBe(1);
  }
});

test('a stream that is deleted has no end', async () => {
  for (const remove of [() => other.deleteStream(stream), () => other.tombstoneStream(stream)]) {
    expect(await read(stream, 1)).toEqual([]);
    expect(log.isEnd(stream, 1)).toBe(true);
    await remove();
    expect(log.isEnd(stream, 1)).toBe(false);
    await expect(read(stream, 1)).rejects.toThrow(StreamGone);
    stream = `stream-${++streams}`;
    await append(stream, -1);
  }
});
