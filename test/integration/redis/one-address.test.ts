/** One Redis behind one address, as deployments have it: failovers, users with few rights, and Sentinels. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, describe, expect, it } from 'vitest';

import { freePort } from '#infra/private-redis/free-port.ts';
import { connectRedis, missingRight, waitForRedis } from '#libs/platform/redis/index.ts';
import { startCutProxy } from '#test/support/cut-proxy.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestRedis } from '#test/support/redis.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

const httpUrl = (url: string): string => `http://${new URL(url).host}`;

describe.skipIf(process.env['PARLEY_TEST_REDIS'] === 'cluster')(
  'a Redis behind one address',
  { timeout: 60_000 },
  () => {
    it('is connected again when it was demoted and kept its connections', async () => {
      const [first, second] = await Promise.all([startTestRedis(), startTestRedis()]);
      const proxy = await startCutProxy(httpUrl(first.url));
      cleanUps.push(first.stop, second.stop, proxy.stop);
      // The proxy is on this machine, and a container may have an address of its own.
      const url = new URL(second.url);
      url.host = new URL(proxy.baseUrl).host;
      // Both accept the password of the second one.
      await first.command('CONFIG', 'SET', 'requirepass', decodeURIComponent(url.password));
      const client = connectRedis(url.href);
      cleanUps.push(() => client.close());
      await waitForRedis(client, 60_000);
      const set = (value: string) => client.send('key', (node) => node.set('key', value));
      await set('before');

      // The address leads to the second server now; the first one refuses writes, and closes nothing.
      proxy.redirect(httpUrl(second.url));
      const firstNow = new URL(first.url);
      firstNow.password = url.password;
      const direct = connectRedis(firstNow.href);
      cleanUps.push(() => direct.close());
      await waitForRedis(direct, 60_000);
      await direct.send('key', (node) => node.call('REPLICAOF', '127.0.0.1', '1'));
      await expect(set('refused')).rejects.toMatchObject({ code: 'store_unavailable' });

      await eventually(() => set('after'));
      expect(await second.command('GET', 'key')).toBe('after');
    });

    it('names the right that its user lacks', async () => {
      const redis = await startTestRedis();
      cleanUps.push(redis.stop);
      await redis.command('ACL', 'SETUSER', 'few', 'on', '>secret', '~parley:*', 'resetchannels', '+@all');
      const url = new URL(redis.url);
      url.username = 'few';
      url.password = 'secret';
      const client = connectRedis(url.href);
      cleanUps.push(() => client.close());
      await waitForRedis(client, 60_000);
      const [node] = client.nodes();
      expect(await missingRight(node!)).toMatch(/^NOPERM .*channel/);
      await redis.command('ACL', 'SETUSER', 'few', '&parley:*');
      expect(await missingRight(node!)).toBe(null);
      await redis.command('ACL', 'SETUSER', 'few', '-function');
      expect(await missingRight(node!)).toMatch(/^NOPERM .*function/);
      await redis.command('ACL', 'SETUSER', 'few', '+function', '-fcall');
      expect(await missingRight(node!)).toMatch(/^NOPERM .*fcall/);
      await expect(client.send('x', (one) => one.get('not-parley'))).rejects.toMatchObject({
        code: 'store_unavailable',
      });
    });

    it('is named if it lacks the database of the address', async () => {
      const redis = await startTestRedis();
      cleanUps.push(redis.stop);
      const reasons: string[] = [];
      for (const number of [3, 99]) {
        const client = connectRedis(`${redis.url}/${number}`, { onMisfit: (reason) => reasons.push(reason) });
        cleanUps.push(() => client.close());
        await waitForRedis(client, 60_000);
      }
      await eventually(() => expect(reasons).toEqual([expect.stringMatching(/has no database 99/)]));
    });

    it('is named if it is a Sentinel', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'parley-test-sentinel-'));
      const port = await freePort();
      await writeFile(join(folder, 'sentinel.conf'), `port ${port}\ndir ${folder}\n`);
      const sentinel = spawn('redis-server', [join(folder, 'sentinel.conf'), '--sentinel'], { stdio: 'ignore' });
      cleanUps.push(
        () => rm(folder, { recursive: true, force: true }),
        () => sentinel.kill('SIGKILL'),
      );
      let why = '';
      for (const url of [`redis://127.0.0.1:${port}`, `redis://127.0.0.1:${port},redis://127.0.0.1:${port}`]) {
        why = '';
        const client = connectRedis(url, { onMisfit: (reason) => (why = reason) });
        await eventually(() => expect(why).toMatch(/is a Redis Sentinel/));
        client.close();
      }
    });
  },
);
