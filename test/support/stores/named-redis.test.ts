import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { freePort } from '#infra/private-redis/free-port.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';
import { borrowNamedRedis, claimNamedRedis } from './named-redis.ts';

describe('the Redis that REDIS_URL names', { timeout: 120_000 }, () => {
  let server: TestRedis;
  let said: string[];
  const claim = (): Promise<void> => claimNamedRedis((line) => said.push(line));

  beforeAll(async () => {
    vi.stubEnv('PARLEY_TEST_REDIS', '');
    server = await startTestRedis();
  }, 120_000);
  afterAll(() => server.stop());
  beforeEach(async () => {
    said = [];
    vi.stubEnv('REDIS_URL', server.url);
    vi.stubEnv('PARLEY_TEST_FLUSH', undefined);
    vi.stubEnv('PARLEY_TEST_REDIS_CLAIMED', undefined);
    await server.command('FLUSHALL');
  });
  afterEach(() => vi.unstubAllEnvs());

  it('is not emptied without confirmation when it holds keys', async () => {
    await server.command('SET', 'foreign-key', 'else');
    await expect(claim()).rejects.toThrow(/database 0 of 127\.0\.0\.1:\d+ holds 1 keys.*PARLEY_TEST_FLUSH=1/);
    expect(await borrowNamedRedis()).toBeUndefined();
    expect(await server.command('GET', 'foreign-key')).toBe('else');
  });

  it('is emptied on request, and reserved for one user at a time', async () => {
    await server.command('SET', 'foreign-key', 'else');
    vi.stubEnv('PARLEY_TEST_FLUSH', '1');
    await claim();
    const lent = await borrowNamedRedis();
    expect(lent?.url).toBe(server.url);
    expect(await server.command('DBSIZE')).toBe(0);
    expect(await borrowNamedRedis()).toBeUndefined();
    await server.command('SET', 'of-a-test', '1');
    await lent?.stop();
    expect(await server.command('DBSIZE')).toBe(0);
    const again = await borrowNamedRedis();
    expect(again?.url).toBe(server.url);
    await again?.stop();
  });

  it('leaves the other databases of the server alone', async () => {
    await server.command('SET', 'foreign-key', 'else');
    vi.stubEnv('REDIS_URL', `${server.url}/9`);
    await claim();
    const lent = await borrowNamedRedis();
    await lent?.stop();
    expect(await server.command('GET', 'foreign-key')).toBe('else');
    expect(said).toEqual([expect.stringMatching(/^redis: database 9 of 127\.0\.0\.1:\d+ of REDIS_URL/)]);
    expect(said.join()).not.toContain(new URL(server.url).password);
  });

  it('must answer', async () => {
    const unusedPort = await freePort();
    vi.stubEnv('REDIS_URL', `redis://127.0.0.1:${unusedPort}`);
    await expect(claim()).rejects.toThrow(`REDIS_URL: database 0 of 127.0.0.1:${unusedPort}: `);
    vi.stubEnv('REDIS_URL', 'redis://a:1,redis://b:2');
    await expect(claim()).rejects.toThrow('npm run test:redis-cluster');
  });

  it('is undefined where REDIS_URL is not set', async () => {
    vi.stubEnv('REDIS_URL', '');
    await claim();
    expect(await borrowNamedRedis()).toBeUndefined();
    expect(said).toEqual([]);
  });
});
