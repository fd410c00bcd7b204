import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findRunning } from '#infra/data-folder/index.ts';
import { freePort } from '#infra/private-redis/free-port.ts';
import { redisProcessesIn } from '#infra/private-redis/orphans.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import { ensureListenable } from '#services/listen-address.ts';
import { ROLES } from '#services/roles.ts';
import type { StartedRole } from '#services/start-roles.ts';
import { startStandalone, type Standalone, type StandaloneParts } from '#services/standalone/app.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { startEmptyRedis } from '#test/support/redis.ts';

let parent: string;
let dataDir: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'parley-test-standalone-'));
  dataDir = join(parent, 'data');
});
afterEach(() => rm(parent, { recursive: true, force: true }));

describe('standalone', () => {
  it('runs its stores and roles, prints their addresses, and leaves nothing behind', async () => {
    const events: string[] = [];
    const parley = await start({ roles: [recordingRole('projector', events), recordingRole('gateway', events)] });
    expect(parley.baseUrl).toBe('http://gateway.example');
    expect(await findRunning(dataDir)).toMatchObject({ pid: process.pid, baseUrl: parley.baseUrl, ...parley.stores });
    await expect(parley.platform.store.ping()).resolves.toBeUndefined();
    expect(parley.stores.eventstoreUrl).toMatch(/^esdb:\/\/parley:[0-9a-f]{48}@127\.0\.0\.1:/);
    expect((await stat(join(dataDir, 'run.json'))).mode & 0o777).toBe(0o600);
    await eventually(async () => (await parley.platform.redis.ping()).length === 1);

    expect(await parley.stop()).toEqual([]);
    expect(events).toEqual(['projector starts', 'gateway starts', 'gateway stops', 'projector stops']);
    expect(await findRunning(dataDir)).toBeUndefined();
    expect(await redisProcessesIn(join(dataDir, 'redis'))).toEqual([]);
  });

  it('runs only the selected roles', async () => {
    const events: string[] = [];
    const roles = [recordingRole('projector', events), recordingRole('gateway', events)];
    const parley = await start({ roles }, { ROLES: 'projector' });
    await parley.stop();
    expect(events).toEqual(['projector starts', 'projector stops']);
  });

  it('prints the first key until it was printed once, also after an interrupted start', async () => {
    const cutShort: readonly StartedRole[] = [{ name: 'fails', start: () => Promise.reject(new Error('cut short')) }];
    await expect(start({ roles: cutShort })).rejects.toThrow('cut short');
    const second = await start({});
    const { apiKey } = second.firstKey;
    expect(apiKey).toMatch(/^parley_live_/);
    await second.stop();
    const third = await start({});
    expect(third.firstKey.apiKey).toBe(apiKey);
    await third.firstKey.shown();
    await third.stop();
    const fourth = await start({});
    expect(fourth.firstKey.apiKey).toBeNull();
    await fourth.stop();
  });

  it('uses configured stores and does not start its own', async () => {
    const [redis, eventStore] = await Promise.all([startEmptyRedis(), startTestEventStore()]);
    const parley = await start({}, { REDIS_URL: redis.url, EVENTSTORE_URL: eventStore.url });
    expect(parley.stores).toEqual({ redisUrl: redis.url, eventstoreUrl: eventStore.url });
    await expect(parley.platform.store.ping()).resolves.toBeUndefined();
    await parley.stop();
    await Promise.all([redis.stop(), eventStore.stop()]);
  });

  it('serves its health while it waits for the event store, and then all', async () => {
    const eventStore = await startTestEventStore({ mode: 'process' });
    await eventStore.kill9();
    const stopping = new AbortController();
    const port = await freePort();
    const starting = start({ roles: ROLES }, { EVENTSTORE_URL: eventStore.url, PORT: String(port) }, stopping.signal);
    const health = `http://127.0.0.1:${port}/health`;
    try {
      await eventually(async () => expect((await fetch(`${health}/live`)).status).toBe(200));
      const ready = await fetch(`${health}/ready`);
      expect(ready.status).toBe(503);
      expect(ready.headers.get('retry-after')).toMatch(/^\d+$/);
      expect(await ready.json()).toMatchObject({
        status: 'down',
        checks: {
          event_store: { status: 'down', detail: { reason: expect.stringMatching(/event store is unavailable/) } },
          redis: { status: 'ok' },
        },
      });
      await eventStore.restart();
      const parley = await starting;
      expect(parley.baseUrl).toBe(`http://127.0.0.1:${port}`);
      await eventually(async () => expect((await fetch(`${health}/ready`)).status).toBe(200));
      expect((await fetch(`${parley.baseUrl}/api/v1/channels`)).status).toBe(401);
      expect(await parley.stop()).toEqual([]);
    } finally {
      stopping.abort();
      await starting.catch(() => undefined);
      await eventStore.stop();
    }
  });

  it('stops while it waits for the event store, and frees its port', async () => {
    const stopping = new AbortController();
    const port = await freePort();
    const variables = { EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false', PORT: String(port) };
    const starting = start({}, variables, stopping.signal);
    await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/health/live`)).status).toBe(200));
    stopping.abort(new Error('stopped by this test'));
    await expect(starting).rejects.toThrow('stopped by this test');
    await expect(ensureListenable('127.0.0.1', port)).resolves.toBeUndefined();
  });

  it('restarts the event store at its address when its thread dies', async () => {
    const threads: Worker[] = [];
    const remember = (worker: Worker): void => void threads.push(worker);
    process.on('worker', remember);
    const parley = await start({});
    expect(threads).toHaveLength(1);
    await threads[0]?.terminate();
    await eventually(() => parley.platform.store.ping());
    expect(threads.length).toBeGreaterThan(1);
    process.off('worker', remember);
    expect(await parley.stop()).toEqual([]);
  });

  it('stops the started roles when one fails to start', async () => {
    const failing: StartedRole = { name: 'gateway', listens: true, start: () => Promise.reject(new Error('no')) };
    const events: string[] = [];
    await expect(start({ roles: [recordingRole('projector', events), failing] })).rejects.toThrow('no');
    expect(events).toEqual(['projector starts', 'projector stops']);
    expect(await redisProcessesIn(join(dataDir, 'redis'))).toEqual([]);
    expect(await findRunning(dataDir)).toBeUndefined();
  });

  it('reports a busy port and how to choose another, before it starts anything', async () => {
    const { server, port } = await occupiedPort();
    try {
      const failure = start({}, { PORT: String(port) });
      await expect(failure).rejects.toThrow(
        `port ${port} of 127.0.0.1 is in use; choose another: PORT=${port + 1} npm start`,
      );
      await expect(redisProcessesIn(join(dataDir, 'redis'))).resolves.toEqual([]);
    } finally {
      server.close();
    }
  });

  it('refuses a folder with foreign files', async () => {
    await writeFile(join(parent, 'thesis.txt'), '');
    await expect(start({}, { DATA_DIR: parent })).rejects.toThrow('holds files that are not Parley');
  });

  it('refuses a host that is not an address of this machine', async () => {
    // An address for documentation (RFC 5737): no machine has it.
    await expect(start({}, { HOST: '192.0.2.1' })).rejects.toThrow('HOST 192.0.2.1 is not an address of this machine');
  });
});

function start(
  parts: Partial<StandaloneParts>,
  variables: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Standalone> {
  const config = parseConfig({ DATA_DIR: dataDir, PORT: '0', ...variables });
  return startStandalone(config, { roles: [], log: createLogger({ level: 'silent' }), ...parts }, signal);
}

function recordingRole(name: string, events: string[]): StartedRole {
  return {
    name,
    listens: name === 'gateway',
    async start() {
      events.push(`${name} starts`);
      return {
        url: name === 'gateway' ? 'http://gateway.example' : undefined,
        async stop() {
          events.push(`${name} stops`);
        },
      };
    },
  };
}

async function occupiedPort(): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}
