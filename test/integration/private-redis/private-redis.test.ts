import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startPrivateRedis } from '#infra/private-redis/index.ts';
import { redisProcessesIn } from '#infra/private-redis/orphans.ts';
import { pingRedis } from '#infra/private-redis/ping.ts';
import { startRedisProcess } from '#infra/private-redis/redis-process.ts';
import { freePort } from '#infra/private-redis/free-port.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { eventually } from '#test/support/eventually.ts';

let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-private-redis-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

describe('private Redis', () => {
  it('requires its password, and ends when it is stopped', async () => {
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    expect(await pingRedis(addressOf(redis.url))).toBe(true);
    expect(await pingRedis({ port: addressOf(redis.url).port })).toBe(false);
    expect((await stat(join(dataDir, 'redis.log'))).size).toBeGreaterThan(0);
    await redis.stop();
    expect(await redisProcessesIn(dataDir)).toEqual([]);
  });

  it('comes back at the same address after kill -9, repeatedly', async () => {
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    const { url } = redis;
    for (let time = 0; time < 3; time++) {
      const killed = redis.pid;
      process.kill(killed, 'SIGKILL');
      await eventually(() => redis.pid !== killed);
      expect(await pingRedis(addressOf(url))).toBe(true);
    }
    expect(redis.url).toBe(url);
    expect(await redisProcessesIn(dataDir)).toEqual([redis.pid]);
    await redis.stop();
  });

  it('has a socket that only its user may open, also after kill -9', async () => {
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    const { url, socketPath = 'none' } = redis;
    const client = new Redis(url, { path: socketPath, maxRetriesPerRequest: 0, enableOfflineQueue: false });
    client.on('error', () => undefined);
    const port = (): Promise<string> => client.config('GET', 'port').then((reply) => String((reply as string[])[1]));
    await eventually(async () => expect(await port()).toBe(String(addressOf(url).port)));
    expect(client.stream).not.toHaveProperty('remotePort', addressOf(url).port);
    expect((await stat(socketPath)).mode & 0o777).toBe(0o700);

    const killed = redis.pid;
    process.kill(killed, 'SIGKILL');
    await eventually(() => redis.pid !== killed);
    await eventually(async () => expect(await port()).toBe(String(addressOf(url).port)));
    const other = new Redis({ path: socketPath, maxRetriesPerRequest: 0, retryStrategy: () => null });
    other.on('error', () => undefined);
    await expect(other.get('any')).rejects.toThrow('NOAUTH');
    for (const each of [client, other]) each.disconnect();
    await redis.stop();
  });

  it('is reached through its port where the socket cannot be connected to, also by subscriptions', async () => {
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    const { url, socketPath = 'none' } = redis;
    const client = connectRedis(url, { socketPath });
    await waitForRedis(client, 10_000);
    const subscriber = client.nodes()[0]?.duplicate();
    subscriber?.on('error', () => undefined);
    const answers = () => eventually(async () => expect(await subscriber?.ping()).toBe('PONG'));
    await answers();
    const named = async () => String(await client.send('any', (node) => node.client('INFO')));
    expect(await named()).toContain('addr=redis.sock');
    await rm(socketPath);
    for (const each of [...client.nodes(), subscriber]) each?.stream.destroy();
    await eventually(async () => expect(await named()).toContain('addr=127.0.0.1:'));
    await answers();
    subscriber?.disconnect();
    client.close();
    await redis.stop();
  });

  it('has no socket where the path is too long for one', async () => {
    const folder = join(dataDir, 'x'.repeat(100));
    const redis = await startPrivateRedis({ dataDir: folder, log: silentLog });
    expect(redis.socketPath).toBeUndefined();
    expect(await pingRedis(addressOf(redis.url))).toBe(true);
    expect((await readdir(folder)).filter((name) => name.includes('sock'))).toEqual([]);
    await redis.stop();
  });

  it('serves from memory while its disk is full, and saves again once there is room', async ({ skip }) => {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', dataDir], { stdio: 'ignore' });
    } catch {
      skip('needs the right to mount a file system');
    }
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    try {
      await command(redis.url, 'SET', 'before', 'kept');
      const rest = await statfs(dataDir);
      await writeFile(join(dataDir, 'others'), Buffer.alloc(rest.bavail * rest.bsize));
      // The first writes fit into the page that is begun, and the write that does not is acknowledged.
      const large = 'x'.repeat(8_192);
      await command(redis.url, 'SET', 'large', large);
      await eventually(
        async () => (await command(redis.url, 'CONFIG', 'GET', 'appendonly'))?.toString() === 'appendonly,no',
      );
      expect(await command(redis.url, 'SET', 'meanwhile', 'taken')).toBe('OK');
      expect(await command(redis.url, 'GET', 'before')).toBe('kept');

      await rm(join(dataDir, 'others'));
      await eventually(async () =>
        (await command(redis.url, 'INFO', 'persistence'))?.toString().includes('aof_enabled:1'),
      );
      await eventually(async () =>
        (await command(redis.url, 'INFO', 'persistence'))?.toString().includes('aof_rewrite_in_progress:0'),
      );
      await redis.stop();
      const next = await startPrivateRedis({ dataDir, log: silentLog });
      expect(await command(next.url, 'GET', 'meanwhile')).toBe('taken');
      await next.stop();
    } finally {
      await redis.stop();
      execFileSync('umount', [dataDir]);
    }
  });

  it('discards damaged files at its start, and when the server comes back', async () => {
    const first = await startPrivateRedis({ dataDir, log: silentLog });
    await command(first.url, 'SET', 'key', 'value');
    await first.stop();
    await damage(/\.aof$/);
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    expect(await command(redis.url, 'SET', 'key', 'value', 'NX', 'GET')).toBeNull();

    const killed = redis.pid;
    process.kill(killed, 'SIGSTOP');
    await damage(/\.manifest$/);
    process.kill(killed, 'SIGKILL');
    await eventually(() => redis.pid !== killed);
    expect(await command(redis.url, 'GET', 'key')).toBeNull();
    await redis.stop();
    expect((await readdir(dataDir)).toSorted()).toEqual(['appendonlydir', 'redis.log']);
  });

  it('keeps its files when the server fails to start for another reason', async () => {
    const first = await startPrivateRedis({ dataDir, log: silentLog });
    await command(first.url, 'SET', 'key', 'value');
    await first.stop();
    const path = process.env['PATH'];
    const broken = join(dataDir, 'broken');
    await mkdir(broken);
    await writeFile(join(broken, 'redis-server'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    process.env['PATH'] = broken;
    try {
      await expect(startPrivateRedis({ dataDir, log: silentLog })).rejects.toThrow('the private Redis does not start');
    } finally {
      process.env['PATH'] = path;
    }
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    expect(await command(redis.url, 'GET', 'key')).toBe('value');
    await redis.stop();
  });

  it('keeps its files when a signal ends the server while it loads them', async () => {
    const first = await startPrivateRedis({ dataDir, log: silentLog });
    await command(first.url, 'SET', 'key', 'value');
    await first.stop();
    const path = process.env['PATH'] ?? '';
    const killed = join(dataDir, 'killed');
    await mkdir(killed);
    // Kills the first server on its folder, like the kernel when memory is short, and starts the next ones.
    const script = `#!/bin/sh\nPATH='${path}'\nmkdir '${killed}/once' 2>&- && kill -9 $$\nexec redis-server "$@"\n`;
    await writeFile(join(killed, 'redis-server'), script, { mode: 0o755 });
    process.env['PATH'] = `${killed}:${path}`;
    try {
      const redis = await startPrivateRedis({ dataDir, log: silentLog });
      expect((await readdir(killed)).toSorted()).toEqual(['once', 'redis-server']);
      expect(await command(redis.url, 'GET', 'key')).toBe('value');
      await redis.stop();
    } finally {
      process.env['PATH'] = path;
    }
  });

  it('discards its files when the server crashes on them', async () => {
    const first = await startPrivateRedis({ dataDir, log: silentLog });
    await command(first.url, 'SET', 'key', 'value');
    await first.stop();
    const path = process.env['PATH'] ?? '';
    const crashing = join(dataDir, 'crashing');
    await mkdir(crashing);
    // The folder of a server is its working directory.
    const script = `#!/bin/sh\nPATH='${path}'\ntest -d appendonlydir && kill -SEGV $$\nexec redis-server "$@"\n`;
    await writeFile(join(crashing, 'redis-server'), script, { mode: 0o755 });
    process.env['PATH'] = `${crashing}:${path}`;
    try {
      const redis = await startPrivateRedis({ dataDir, log: silentLog });
      expect(await command(redis.url, 'GET', 'key')).toBeNull();
      await redis.stop();
    } finally {
      process.env['PATH'] = path;
    }
  });

  it('ends when its Parley is killed', async () => {
    const parley = fork(join(import.meta.dirname, 'private-redis.process.ts'), [dataDir], { execArgv: [] });
    await once(parley, 'message');
    expect(await redisProcessesIn(dataDir)).toHaveLength(1);
    parley.kill('SIGKILL');
    await eventually(async () => (await redisProcessesIn(dataDir)).length === 0);
  });

  it('ends a Redis that was left behind on its folder before it starts its own', async () => {
    const left = await startRedisProcess({ dataDir, port: await freePort() });
    // A paused orphan does not handle SIGTERM: the hardest case.
    left.kill('SIGSTOP');
    const redis = await startPrivateRedis({ dataDir, log: silentLog });
    await left.exited;
    expect(await redisProcessesIn(dataDir)).toEqual([redis.pid]);
    await redis.stop();
  });

  it('stops waiting for a silent server when it is aborted', async () => {
    // It does not answer, like a server that loads a large file.
    const silent = { dataDir, port: await freePort(), extraConfig: ['requirepass unknown'] };
    const giveUp = new AbortController();
    const start = startRedisProcess({ ...silent, signal: giveUp.signal });
    await eventually(async () => (await redisProcessesIn(dataDir)).length === 1);
    giveUp.abort(new Error('no longer needed'));
    await expect(start).rejects.toThrow('no longer needed');
    expect(await redisProcessesIn(dataDir)).toEqual([]);
  });

  it('reports in one line why it does not start', async () => {
    await rm(dataDir, { recursive: true });
    const path = process.env['PATH'];
    process.env['PATH'] = '';
    try {
      await expect(startPrivateRedis({ dataDir, log: silentLog })).rejects.toThrow(/^redis-server is not on the PATH/);
    } finally {
      process.env['PATH'] = path;
    }
  });
});

async function damage(names: RegExp): Promise<void> {
  const folder = join(dataDir, 'appendonlydir');
  const found = (await readdir(folder)).filter((name) => names.test(name));
  expect(found).not.toEqual([]);
  for (const name of found) await writeFile(join(folder, name), Buffer.alloc(1_000, 'Z'));
}

async function command(url: string, ...[name = '', ...args]: string[]): Promise<unknown> {
  const client = new Redis(url);
  try {
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}

function addressOf(url: string): { port: number; password: string } {
  const { port, password } = new URL(url);
  return { port: Number(port), password };
}
