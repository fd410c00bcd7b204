/** Parley in the process of a test suite. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { type StartedParley, startParley } from '#services/testing/index.ts';
import { COMPILE_CACHE } from '#test/support/child-process.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { startEmptyRedis } from '#test/support/redis.ts';

const PROGRAM = join(import.meta.dirname, 'in-a-process.process.ts');
const GENEROUS = { timeout: 240_000 };

describe('a Parley in the process of its test', GENEROUS, () => {
  let parley: StartedParley;
  beforeAll(async () => void (parley = await startParley()), GENEROUS.timeout);
  afterAll(() => parley?.stop());

  it('accepts its key as soon as it is started', async () => {
    const { data } = await parley.client.rest.GET('/api/v1/channels', {});
    expect(data?.items).toEqual([]);
    const channel = await parley.createChannel({ name: 'First' });
    expect(channel).toMatchObject({ name: 'First', participants: [{ display_name: 'Owner' }] });
  });

  it('creates users that call with their own keys, and keys', async () => {
    const ada = await parley.createUser({ display_name: 'Ada' });
    const mine = await ada.client.rest.POST('/api/v1/channels', { body: { name: 'Of Ada' } });
    expect(mine.data?.participants).toMatchObject([{ type: 'authenticated_user', user_id: ada.id }]);
    const readOnly = await parley.createKey({ scopes: ['read'] });
    const answer = await fetch(`${parley.url}/api/v1/channels`, {
      method: 'POST',
      headers: { authorization: `Bearer ${readOnly}`, 'content-type': 'application/json' },
      body: '{"name":"No"}',
    });
    expect(answer.status).toBe(403);
  });

  it('creates isolated organizations', async () => {
    const channel = await parley.createChannel();
    const [one, two] = await Promise.all([parley.createOrganization('One'), parley.createOrganization()]);
    const own = await one.createChannel({ name: 'Of one' });
    await one.createUser();
    for (const [organization, id, status] of [
      [one, own.id, 200],
      [one, channel.id, 404],
      [two, own.id, 404],
      [parley, own.id, 404],
    ] as const) {
      const { response } = await organization.client.rest.GET('/api/v1/channels/{id}', { params: { path: { id } } });
      expect(response.status).toBe(status);
    }
    const { data } = await two.client.rest.GET('/api/v1/channels', {});
    expect(data?.items).toEqual([]);
  });

  it('rejects with the answer when Parley refuses', async () => {
    await expect(parley.createUser({ email: 'nowhere' })).rejects.toMatchObject({
      status: 422,
      code: 'validation_error',
    });
  });

  it('publishes events as they happen', async () => {
    const { id } = await parley.createChannel();
    const subscription = parley.client.channel(id).subscribe({ after: 0 });
    await subscription.send('interaction.post', { content: [{ type: 'text', text: 'Hello' }] });
    const types: string[] = [];
    for await (const { type } of subscription) {
      types.push(type);
      if (type === 'interaction.posted') break;
    }
    expect(types).toEqual(['channel.created', 'interaction.posted']);
  });

  it('runs beside others, isolated from them, and survives their stop', async () => {
    const [left, right] = await Promise.all([startParley(), startParley()]);
    const { id } = await left.createChannel();
    const read = async (from: StartedParley) =>
      (await from.client.rest.GET('/api/v1/channels/{id}', { params: { path: { id } } })).response.status;
    expect([await read(left), await read(right), await read(parley)]).toEqual([200, 404, 404]);
    const headers = { authorization: `Bearer ${left.apiKey}` };
    expect((await fetch(`${right.url}/api/v1/channels`, { headers })).status).toBe(401);
    // While one ends, the other two write.
    const [, ...channels] = await Promise.all([
      left.stop(),
      ...Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? right : parley).createChannel()),
    ]);
    expect(new Set(channels.map((channel) => channel.id)).size).toBe(40);
    await right.stop();
  });
});

describe('starting and stopping', GENEROUS, () => {
  const cleanUps: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
  });

  it('keeps its data in named stores', async () => {
    const [redis, eventStore] = await Promise.all([startEmptyRedis(), startTestEventStore()]);
    cleanUps.push(redis.stop, eventStore.stop);
    const settings = { REDIS_URL: redis.url, EVENTSTORE_URL: eventStore.url };
    const first = await startParley({ settings });
    const { id } = await first.createChannel({ name: 'Kept' });
    await first.stop();
    await using second = await startParley({ settings });
    const { data } = await second.client.rest.GET('/api/v1/channels/{id}', { params: { path: { id } } });
    expect(data).toMatchObject({ name: 'Kept' });
  });

  it('waits for a store that is down for a moment, and creates nothing twice', async () => {
    const eventStore = await startTestEventStore({ mode: 'process' });
    cleanUps.push(eventStore.stop);
    const parley = await startParley({ settings: { EVENTSTORE_URL: eventStore.url } });
    cleanUps.push(parley.stop);
    eventStore.pause();
    const channel = parley.createChannel();
    const refused = await parley.client.rest.POST('/api/v1/users', { body: { display_name: 'Refused' } });
    eventStore.resume();
    expect(refused.response.status).toBe(503);
    const { id } = await channel;
    const { data } = await parley.client.rest.GET('/api/v1/channels', {});
    expect(data?.items.map((one) => one.id)).toEqual([id]);
  });

  it('stops once, however often it is called', async () => {
    const parley = await startParley();
    await Promise.all([parley.stop(), parley.stop(), parley[Symbol.asyncDispose]()]);
    await expect(fetch(parley.url)).rejects.toThrow();
  });

  it('reports wrong settings', async () => {
    await expect(startParley({ settings: { PORT: 'many', LOG_LEVEL: 'loud' } })).rejects.toThrow(/PORT.*\nLOG_LEVEL/);
  });

  it('reports how to get a redis-server where there is none', async () => {
    const temporary = await temporaryFolder();
    vi.stubEnv('TMPDIR', temporary).stubEnv('PATH', '/nowhere');
    cleanUps.push(() => vi.unstubAllEnvs());
    await expect(startParley()).rejects.toThrow(/redis-server is not on the PATH: install Redis 7 or newer.*REDIS_URL/);
    expect(await foldersOf(temporary)).toEqual([]);
  });

  it('leaves nothing in the process, which then ends by itself without output', async () => {
    const outcome = await run();
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    const [, { before, after }] = outcome.lines as [unknown, { before: string[]; after: string[] }];
    expect(after).toEqual(before);
    expect(outcome.lines).toHaveLength(2);
    expect(await foldersOf(outcome.temporary)).toEqual([]);
    expect(existsSync(join(outcome.temporary, 'data'))).toBe(false);
  });

  it('leaves no Redis and no folder when its process is killed', async () => {
    const { child, temporary, firstLine } = await launch('stay');
    await firstLine;
    const [folder = ''] = await foldersOf(temporary);
    const run = JSON.parse(await readFile(join(temporary, folder, 'run.json'), 'utf8')) as { redisUrl: string };
    const redisPort = Number(new URL(run.redisUrl).port);
    child.kill('SIGKILL');
    await eventually(async () => expect(await foldersOf(temporary)).toEqual([]), { timeoutMs: 60_000 });
    await eventually(async () => expect(await listens(redisPort)).toBe(false), { timeoutMs: 60_000 });
  });

  /** Runs the other test process to its end. */
  async function run() {
    const { child, temporary, output } = await launch();
    const [code] = await once(child, 'close');
    const lines: unknown[] = output.stdout
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    return { code: Number(code), temporary, lines, stderr: output.stderr };
  }

  async function temporaryFolder(): Promise<string> {
    const temporary = await mkdtemp(join(tmpdir(), 'parley-test-others-'));
    cleanUps.push(() => rm(temporary, { recursive: true, force: true }));
    return temporary;
  }

  async function launch(...args: string[]) {
    const temporary = await temporaryFolder();
    const child: ChildProcess = spawn(process.execPath, [PROGRAM, ...args], {
      cwd: temporary,
      env: { PATH: process.env['PATH'], TMPDIR: temporary, NODE_COMPILE_CACHE: COMPILE_CACHE },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    cleanUps.push(() => child.kill('SIGKILL'));
    const output = { stdout: '', stderr: '' };
    child.stderr?.on('data', (chunk) => (output.stderr += String(chunk)));
    const firstLine = new Promise<void>((resolve, reject) => {
      child.stdout?.on('data', (chunk) => {
        output.stdout += String(chunk);
        if (output.stdout.includes('\n')) resolve();
      });
      child.once('close', () => reject(new Error(output.stderr)));
    });
    firstLine.catch(() => undefined);
    return { child, temporary, output, firstLine };
  }
});

/** Folders of Parley in the temporary folder. Node may keep folders of its own there. */
async function foldersOf(temporary: string): Promise<string[]> {
  return (await readdir(temporary)).filter((name) => name.startsWith('parley-'));
}

async function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.destroy();
      resolve(true);
    }).once('error', () => resolve(false));
  });
}
