// An event store requires the credentials of its folder for every call, except those for which clients send none.
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AccessDeniedError,
  EventStoreDBClient,
  jsonEvent,
  persistentSubscriptionToStreamSettingsFromDefaults,
} from '@eventstore/db-client';
import { PersistentSubscriptionsService } from '@eventstore/db-client/generated/persistent_grpc_pb.js';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { UsersService } from '@eventstore/db-client/generated/users_grpc_pb.js';
import { Client, credentials as channelCredentials, Metadata, type MethodDefinition, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EventStoreServer, startEmbeddedEventStore } from '#infra/embedded-eventstore/index.ts';
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';
import { succeed, startMisbehavingServer } from '../eventstore/misbehaving-server.ts';
import { startStoreProcess } from './event-store-process.ts';
import { NO_EVENTS } from '#libs/kernel/event.ts';

let dataDir: string;
let store: EventStoreServer;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'event-store-credentials-'));
  store = await startEmbeddedEventStore({ dataDir });
});
afterAll(async () => {
  await store.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
}

const withCredentials = (credentials: string): string => store.url.replace(/\/\/.*@/, `//${credentials}`);

test('they are generated once, in a file that only its owner can read, like that of the events', async () => {
  const content = await readFile(join(dataDir, 'credentials'), 'utf8');
  expect(content).toMatch(/^parley:[0-9a-f]{48}\n$/);
  expect(store.url).toBe(`esdb://${content.trim()}@127.0.0.1:${store.port}?tls=false`);
  expect((await stat(join(dataDir, 'credentials'))).mode & 0o777).toBe(0o600);
  expect((await stat(join(dataDir, 'events.mdb'))).mode & 0o777).toBe(0o600);

  const { url, port } = store;
  await store.stop();
  await chmod(join(dataDir, 'credentials'), 0o644);
  store = await startEmbeddedEventStore({ dataDir, port });
  expect(store.url).toBe(url);
  expect((await stat(join(dataDir, 'credentials'))).mode & 0o777).toBe(0o600);
});

test('a file that is not a name and a password is refused', async () => {
  const other = await mkdtemp(join(tmpdir(), 'event-store-credentials-'));
  await startEmbeddedEventStore({ dataDir: other }).then((started) => started.stop());
  await writeFile(join(other, 'credentials'), 'open sesame');
  await expect(startEmbeddedEventStore({ dataDir: other })).rejects.toThrow('credentials must be one line');
  await rm(other, { recursive: true });
});

const methods = [StreamsService, PersistentSubscriptionsService, UsersService].flatMap((service) =>
  Object.values(service as Record<string, MethodDefinition<unknown, unknown>>),
);

/** The status of a call with these headers and no complete request. */
async function statusOf({ path }: MethodDefinition<unknown, unknown>, authorization?: string): Promise<unknown> {
  const client = new Client(`127.0.0.1:${store.port}`, channelCredentials.createInsecure());
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  const bytes = (empty: Buffer): Buffer => empty;
  try {
    return await new Promise((resolve) => {
      const call = client.makeBidiStreamRequest(path, bytes, bytes, metadata);
      call.on('status', resolve).on('error', () => undefined);
      call.on('data', () => undefined);
      call.write(Buffer.alloc(0));
      call.end();
    });
  } finally {
    client.close();
  }
}

test.each(methods.map((method) => [method.path, method] as const))('%s requires them', async (_path, method) => {
  const denied = { code: status.PERMISSION_DENIED, metadata: expect.any(Metadata) };
  expect(await statusOf(method)).toMatchObject(denied);
  const wrong = `Basic ${Buffer.from('parley:wrong').toString('base64')}`;
  expect(await statusOf(method, wrong)).toMatchObject({ code: status.UNAUTHENTICATED });
  expect(await statusOf(method, 'Basic')).toMatchObject({ code: status.UNAUTHENTICATED });
});

test.each([
  ['no credentials', ''],
  ['a wrong password', 'parley:wrong@'],
])('the official client gets an AccessDeniedError with %s', async (_what, credentials) => {
  const client = connectClient(withCredentials(credentials));
  const event = jsonEvent({ type: 't', data: {} });
  await expect(client.appendToStream('s', event)).rejects.toThrow(AccessDeniedError);
  const unary = { credentials: { username: 'parley', password: 'ignored' } };
  await expect(client.appendToStream('s', event, unary)).rejects.toThrow(AccessDeniedError);
  await expect(collect(client.readStream('s'))).rejects.toThrow(AccessDeniedError);
  await expect(client.deleteStream('s')).rejects.toThrow(AccessDeniedError);
  const settings = persistentSubscriptionToStreamSettingsFromDefaults();
  await expect(client.createPersistentSubscriptionToStream('s', 'g', settings)).rejects.toThrow(AccessDeniedError);
  await client.dispose();
});

test('with them the client appends and reads, also when it looks for the leader', async () => {
  for (const url of [store.url, store.url.replace('esdb:', 'esdb+discover:')]) {
    const client = connectClient(url);
    const { nextExpectedRevision } = await client.appendToStream('read', jsonEvent({ type: 't', data: {} }));
    const events = await collect(client.readStream('read'));
    expect(events.at(-1)?.event?.revision).toBe(nextExpectedRevision);
    await client.dispose();
  }
});

test('the client sends them with the stream of batch appends, and still uses it', async () => {
  let sent: unknown;
  // This server implements no unary append.
  const server = await startMisbehavingServer({
    batchStream: (call) => {
      sent = call.metadata.get('authorization');
      call.on('data', (request) => call.write(succeed(request)));
    },
  });
  const client = connectClient(server.url.replace('//', '//us%40er:p%3Aw@'));
  await client.appendToStream('s', jsonEvent({ type: 't', data: {} }));
  expect(sent).toEqual([`Basic ${Buffer.from('us@er:p:w').toString('base64')}`]);
  await client.dispose();
  server.stop();
});

test('Parley treats wrong credentials as an unavailable event store, certain that nothing was written', async () => {
  const wrong = await connectEventStore({ url: withCredentials('parley:wrong@') });
  const append = wrong.store.append('s', NO_EVENTS, [logEvent({})]);
  await expect(append).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(collect(wrong.store.readStream('s'))).rejects.toMatchObject({ code: 'store_unavailable' });
  await wrong.close();
});

test('an insecure store serves calls without credentials', async () => {
  const { port } = store;
  await store.stop();
  store = await startEmbeddedEventStore({ dataDir, port, insecure: true });
  expect(store.url).toBe(`esdb://127.0.0.1:${port}?tls=false`);
  const client = EventStoreDBClient.connectionString(store.url);
  await client.appendToStream('s', jsonEvent({ type: 't', data: {} }));
  await client.dispose();
});

test('a store that runs alone prints the file of its credentials, and no password', async () => {
  const folder = join(dataDir, 'alone');
  const alone = await startStoreProcess({ dataDir: folder, insecure: false });
  const file = join(folder, 'eventstore', 'credentials');
  await eventually(() => alone.output().includes(file));
  const [, password = ''] = (await readFile(file, 'utf8')).trim().split(':');
  expect(password).not.toBe('');
  expect(alone.output()).not.toContain(password);
  expect(alone.url).toMatch(/^esdb:\/\/parley:\*{8}@127\.0\.0\.1:\d+\?tls=false$/);
  expect(await alone.end('SIGTERM')).toBe(0);
});
