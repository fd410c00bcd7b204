// Start, stop and refusals to start, as a process and in a thread.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelledError, EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { ServerFeaturesClient } from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { ChannelCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CannotStartError, startEmbeddedEventStore, startEventStoreWorker } from '#infra/embedded-eventstore/index.ts';
import { startThread } from '#infra/embedded-eventstore/worker.ts';
import { runStoreProcess, startStoreProcess } from './event-store-process.ts';

let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'event-store-running-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

async function withBusyPort(use: (port: number) => Promise<void>): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  try {
    await use(address.port);
  } finally {
    server.close();
  }
}

/** A subscription that has caught up, and the error with which it ends. */
async function subscribed(client: EventStoreDBClient): Promise<{ ended: Promise<unknown> }> {
  const subscription = client.subscribeToAll();
  const ended = new Promise((resolve) => subscription.once('error', resolve));
  subscription.resume();
  await once(subscription, 'caughtUp');
  return { ended };
}

describe('as a process', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it cleanly, open subscriptions with CANCELLED', async (signal) => {
    const store = await startStoreProcess({ dataDir });
    const client = EventStoreDBClient.connectionString(store.url);
    await client.appendToStream('s', jsonEvent({ type: 't', data: {} }));
    const { ended } = await subscribed(client);
    expect(await store.end(signal)).toBe(0);
    expect(await ended).toBeInstanceOf(CancelledError);
    await client.dispose();
  });

  test('a data folder in use is refused in one line', async () => {
    const store = await startStoreProcess({ dataDir });
    const { code, output } = await runStoreProcess({ dataDir });
    expect(code).toBe(1);
    expect(output).toMatch(/^event store: the data folder .* is in use by another process\n$/);
    await store.end('SIGTERM');
  });

  test('the lock of the data folder ends with its process', async () => {
    const killed = await startStoreProcess({ dataDir });
    await killed.end('SIGKILL');
    const next = await startStoreProcess({ dataDir });
    expect(await next.end('SIGTERM')).toBe(0);
  });

  test('a busy port is refused in one line', async () => {
    await withBusyPort(async (port) => {
      const { code, output } = await runStoreProcess({ dataDir, port });
      expect(code).toBe(1);
      expect(output).toBe(`event store: port ${port} on 127.0.0.1 is in use\n`);
    });
  });

  test('a folder with other contents is refused in one line', async () => {
    await mkdir(join(dataDir, 'eventstore'));
    await writeFile(join(dataDir, 'eventstore', 'holiday.txt'), 'photos');
    const { code, output } = await runStoreProcess({ dataDir });
    expect(code).toBe(1);
    expect(output).toMatch(/^event store: the folder .* contains something else than an event store\n$/);
  });
});

describe('in a thread', () => {
  test('it serves until it is stopped, then ends subscriptions with CANCELLED and frees folder and port', async () => {
    const first = await startEventStoreWorker({ dataDir, insecure: true });
    const client = EventStoreDBClient.connectionString(first.url);
    await client.appendToStream('s', jsonEvent({ type: 't', data: {} }));
    const { ended } = await subscribed(client);
    const exit = new Promise((resolve) => first.onExit(resolve));
    await first.stop();
    expect(await ended).toBeInstanceOf(CancelledError);
    expect(await exit).toBeUndefined();
    await client.dispose();

    const second = await startEventStoreWorker({ dataDir, port: first.port, insecure: true });
    expect(second.url).toBe(first.url);
    await second.stop();
  });

  test('it stops while a client is paused, which does not close its connection', async () => {
    const store = await startEventStoreWorker({ dataDir, insecure: true });
    const silent = connect({ port: store.port, host: '127.0.0.1', allowHalfOpen: true });
    // The beginning of an HTTP/2 connection, with empty settings.
    silent.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
    await once(silent, 'data');
    silent.pause();
    silent.on('error', () => undefined);
    await expect(store.stop()).resolves.toBeUndefined();
    silent.destroy();
  });

  test('it drops a client that does not answer its pings', async () => {
    const store = await startEventStoreWorker({ dataDir, insecure: true, keepAliveMs: 100 });
    const silent = connect({ port: store.port, host: '127.0.0.1' });
    silent.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
    silent.resume();
    expect(await once(silent, 'close')).toEqual([false]);
    await store.stop();
  });

  test('it refuses an append that is incomplete when it stops, and writes nothing of it', async () => {
    const store = await startEventStoreWorker({ dataDir, insecure: true });
    const client = new StreamsClient(`127.0.0.1:${store.port}`, ChannelCredentials.createInsecure());
    const ended = Promise.withResolvers<ServiceError | null>();
    const append = client.append((error) => ended.resolve(error));
    const target = new shared.StreamIdentifier().setStreamName(Buffer.from('s'));
    const options = new streams.AppendReq.Options().setStreamIdentifier(target).setAny(new shared.Empty());
    append.write(new streams.AppendReq().setOptions(options));
    // On the same connection: after this response, the server has the append.
    await new Promise((resolve) =>
      new ServerFeaturesClient('', ChannelCredentials.createInsecure(), {
        channelOverride: client.getChannel(),
      }).getSupportedMethods(new shared.Empty(), resolve),
    );
    const stopped = store.stop();
    expect(await ended.promise).toMatchObject({
      code: status.UNAVAILABLE,
      details: expect.stringContaining('stopping'),
    });
    client.close();
    await stopped;
  });

  test.each([
    ['in the current thread', startEmbeddedEventStore],
    ['in a worker thread', startEventStoreWorker],
  ])('a second one on the same folder is refused, %s', async (_where, start) => {
    const first = await startEventStoreWorker({ dataDir, insecure: true });
    await expect(start({ dataDir })).rejects.toThrow(CannotStartError);
    await first.stop();
  });

  test('a busy port is refused, and the folder is free again', async () => {
    await withBusyPort(async (port) => {
      await expect(startEventStoreWorker({ dataDir, port })).rejects.toThrow(`port ${port} on 127.0.0.1 is in use`);
    });
    const store = await startEventStoreWorker({ dataDir, insecure: true });
    await store.stop();
    expect(store.port).toBeGreaterThan(0);
  });

  const script = async (text: string): Promise<URL> => {
    const file = join(dataDir, 'thread.mjs');
    await writeFile(file, text);
    return new URL(`file://${file}`);
  };

  test('a thread that dies before it serves rejects the start', async () => {
    const dying = await script("throw new Error('no memory');");
    await expect(startThread(dying, { dataDir })).rejects.toThrow('no memory');
  });

  test('a thread that dies while it serves reports its error', async () => {
    const dying = await script(`
      import { parentPort } from 'node:worker_threads';
      parentPort.postMessage({ kind: 'started', port: 1, url: 'esdb://x' });
      setTimeout(() => { throw new Error('no memory'); }, 10);
    `);
    const store = await startThread(dying, { dataDir });
    const error = await new Promise((resolve) => store.onExit(resolve));
    expect(error).toHaveProperty('message', 'no memory');
  });

  test('a thread that died leaves folder and events to the next one in the same process', async () => {
    const server = import.meta.resolve('#infra/embedded-eventstore/server.ts');
    const dying = await script(`
      import { parentPort, workerData } from 'node:worker_threads';
      import { startEmbeddedEventStore } from '${server}';
      const { port, url } = await startEmbeddedEventStore(workerData);
      parentPort.once('message', () => { throw new Error('no memory'); });
      parentPort.postMessage({ kind: 'started', port, url });
    `);
    const folder = join(dataDir, 'events');
    const first = await startThread(dying, { dataDir: folder, insecure: true });
    const client = EventStoreDBClient.connectionString(first.url);
    await client.appendToStream('s', jsonEvent({ type: 't', data: {} }));
    const exit = new Promise((resolve) => first.onExit(resolve));
    await first.stop();
    await exit;

    const next = await startEventStoreWorker({ dataDir: folder, port: first.port, insecure: true });
    const { nextExpectedRevision } = await client.appendToStream('s', jsonEvent({ type: 't', data: {} }));
    expect(nextExpectedRevision).toBe(1n);
    await client.dispose();
    await next.stop();
  });
});
