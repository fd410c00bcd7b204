/** `parley <role>`: each role in a process of its own, on shared stores. The tests build on each other. */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FIRST_ORGANIZATION } from '#services/first-organization.ts';
import { freePort } from '#infra/private-redis/free-port.ts';
import { createApiKey } from '#libs/platform/http/index.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord, readLog } from '#test/support/log-reader.ts';
import { startParleyProcess, type ParleyProcess, type ParleyProcessOptions } from '#test/support/parley-process.ts';
import { newChannel, post } from '#test/support/realtime/nodes.ts';
import { messagesOf, openStream, type EventStream } from '#test/support/realtime/stage.ts';
import { openRaw } from '#test/support/realtime/raw-session.ts';
import type { RawWebsocket } from '#test/support/realtime/raw-websocket.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

/** Ends a hang: many processes start at once, and compete for the same cores. */
const HANG_TIMEOUT_MS = 240_000;
const WAIT = { timeoutMs: 120_000, everyMs: 50 };

interface Processes {
  /** Is stopped while it has a request in flight. */
  readonly busyGateway: ParleyProcess;
  /** Keeps serving for a while after SIGTERM. */
  readonly slowGateway: ParleyProcess;
  readonly realtime: ParleyProcess;
  readonly projector: ParleyProcess;
  readonly relay: ParleyProcess;
}

const apiKey = createApiKey();
const running: ParleyProcess[] = [];
let eventStore: TestEventStoreProcess;
let redis: TestRedis;
let processes: Processes;

beforeAll(async () => {
  [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  await Promise.all([eventStore.kill9(), redis.kill9()]);
  const [busyGateway, slowGateway, realtime, projector, relay] = await Promise.all([
    start({ role: 'gateway', env: { REQUEST_TIMEOUT_MS: '120000' } }),
    start({ role: 'gateway', env: { STOP_DELAY_MS: '120000' } }),
    start({ role: 'realtime' }),
    start({ role: 'projector' }),
    // Nothing listens at this address: a relay keeps waiting for it.
    start({ role: 'relay', env: { KAFKA_BROKERS: `127.0.0.1:${await freePort()}` } }),
  ]);
  processes = { busyGateway, slowGateway, realtime, projector, relay };
}, HANG_TIMEOUT_MS);

afterAll(async () => {
  await Promise.all(running.map((parley) => parley.stop()));
  await Promise.all([eventStore?.stop(), redis?.stop()]);
}, HANG_TIMEOUT_MS);

async function start({ env, ...options }: ParleyProcessOptions): Promise<ParleyProcess> {
  const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url, apiKey };
  const parley = await startParleyProcess({ ...stores, env: { STOP_TIMEOUT_MS: '25000', ...env }, ...options });
  running.push(parley);
  return parley;
}

async function health({ api }: ParleyProcess): Promise<{ status: number; state: unknown; down: readonly string[] }> {
  const reply = await api.get('/health/ready');
  const { status: state, checks } = asRecord(reply.json());
  const down = Object.entries(asRecord(checks)).filter(([, check]) => asRecord(check)['status'] !== 'ok');
  return { status: reply.status, state, down: down.map(([name]) => name) };
}

describe('role processes', { timeout: HANG_TIMEOUT_MS }, () => {
  it('wait for unavailable stores, and report that', async () => {
    for (const parley of running) {
      expect(await parley.api.get('/health/live')).toMatchObject({ status: 200 });
      const { status, state, down } = await health(parley);
      expect({ status, state }).toEqual({ status: 503, state: 'down' });
      expect(down).toEqual(expect.arrayContaining(['event_store', 'redis']));
    }
    expect((await health(processes.slowGateway)).down).toContain('bootstrap');
    await Promise.all([eventStore.restart(), redis.restart()]);
    await Promise.all(running.map((parley) => eventually(() => parley.ready(), WAIT)));
  });

  it('make one first organization with one key, however many gateways start at once', async () => {
    const events = (await readLog(eventStore.url, '')).filter(({ stream }) => !stream.startsWith('$'));
    expect(events.map(({ type }) => type).toSorted()).toEqual([
      'KeyIssued.v4',
      'OrganizationCreated.v1',
      'UserCreated.v1',
    ]);
    for (const { api } of [processes.busyGateway, processes.slowGateway]) {
      const { items } = asRecord((await api.get('/api/v1/organizations')).json());
      expect(items).toMatchObject([{ id: FIRST_ORGANIZATION }]);
    }
  });

  let socket: RawWebsocket;
  let events: EventStream;

  it('serve together what one process serves, each its part', async () => {
    const { busyGateway: one, slowGateway: other, realtime, projector, relay } = processes;
    const channel = await newChannel(one.api);
    socket = await openRaw({ port: realtime.port, api: other.api }, channel, { resume: { after: 0 } });
    events = await openStream(realtime, `/api/v1/channels/${channel}/events?after=0`);
    expect(await post(other.api, channel, 'said at the other gateway')).toBe(2);
    await socket.until(({ texts }) => texts.some((text) => text.includes('said at the other gateway')), 60_000);
    await eventually(() => messagesOf(events).length === 2, WAIT);
    await eventually(async () => {
      const { checks } = asRecord((await projector.api.get('/health/ready')).json());
      return asRecord(asRecord(asRecord(checks)['projection'])['detail'])['caught_up'] === true;
    }, WAIT);
    for (const { api } of [realtime, projector, relay]) {
      expect((await api.get('/api/v1/channels')).status).toBe(404);
      expect((await api.get('/metrics')).status).toBe(200);
    }
  });

  it('finish the request that is in flight before they end', async () => {
    const { busyGateway } = processes;
    const body = JSON.stringify({ type: 'websocket', name: 'half-way' });
    const request = await beginRequest(busyGateway.port, body.length);
    let answer = '';
    request.on('data', (chunk) => (answer += String(chunk)));
    busyGateway.signal('SIGTERM');
    // It has stopped listening: new connections are refused, and the earlier request is still in progress.
    await eventually(() => isRefused(busyGateway.port), WAIT);
    const ended = once(request, 'close');
    request.write(body);
    await ended;
    expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*"half-way"/);
    expect(await busyGateway.ended()).toBe(0);
  });

  it('report that they stop while they still serve, and end at once at the second signal', async () => {
    const { slowGateway } = processes;
    slowGateway.signal('SIGTERM');
    await eventually(async () => (await health(slowGateway)).state === 'stopping', WAIT);
    expect(await slowGateway.api.get('/health/ready')).toMatchObject({ status: 503 });
    expect(await slowGateway.api.get('/api/v1/channels')).toMatchObject({
      status: 200,
      headers: { connection: 'close' },
    });
    await eventually(() => {
      slowGateway.signal('SIGTERM');
      return !slowGateway.alive();
    }, WAIT);
    expect(await slowGateway.ended()).toBe(130);
  });

  it('close their sockets and event streams with 1012 when they stop, exit with 0, and leave nothing on the disk', async () => {
    const left = running.filter((parley) => parley.alive());
    expect(left).toHaveLength(3);
    for (const [at, parley] of left.entries()) parley.signal(at % 2 === 0 ? 'SIGTERM' : 'SIGINT');
    expect(await socket.closed({ timeoutMs: 60_000 })).toBe(1012);
    await eventually(() => events.ended(), WAIT);
    expect(events.text()).toContain('event: close\ndata: {"code":1012');
    expect(await Promise.all(left.map((parley) => parley.ended()))).toEqual([0, 0, 0]);
    for (const { dataDir } of running) expect(await readdir(dataDir)).toEqual([]);
  });

  it('that cannot start name all reasons, and end', async () => {
    const env = { PARLEY_TOKEN_SECRET: 'short', LOG_LEVEL: 'loud' };
    const refused = start({ role: 'relay', redisUrl: '', env });
    await expect(refused).rejects.toThrow(/^Parley ended \(1\):/);
    const lines = String(await refused.catch((error: unknown) => error)).split('\n');
    expect(lines.filter((line) => line.startsWith('parley: '))).toEqual([
      'parley: PARLEY_TOKEN_SECRET needs at least 16 characters',
      expect.stringMatching(/^parley: LOG_LEVEL must be one of /),
      'parley: REDIS_URL is missing; the role relay needs it',
      'parley: KAFKA_BROKERS is missing; the role relay needs it',
    ]);
  });
});

/** A request whose head was sent and has arrived, but not its body. */
async function beginRequest(port: number, length: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  const continued = once(socket, 'data');
  socket.write(
    `POST /api/v1/channels HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${apiKey}\r\n` +
      `content-type: application/json\r\ncontent-length: ${length}\r\nexpect: 100-continue\r\n\r\n`,
  );
  const [answer] = await continued;
  expect(String(answer)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  return socket;
}

async function isRefused(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}
