/** Redis with TLS, as the variables configure it: a CA of one's own, client certificates, one server and a cluster. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { freePort } from '#infra/private-redis/free-port.ts';
import { startRedisProcess, type RedisProcess } from '#infra/private-redis/redis-process.ts';
import { parseConfig, tlsOptionsOf } from '#libs/platform/config/index.ts';
import { connectRedis, subscribeToRedis, waitForRedis, type RedisClient } from '#libs/platform/redis/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { makeCertificateAuthority } from '#test/support/kafka/certificates.ts';

const authority = makeCertificateAuthority('redis');
const newer = makeCertificateAuthority('redis, a year later');
const PASSWORD = 'secret';

let folder: string;
let files: { readonly ca: string; readonly cert: string; readonly key: string };
const cleanUps: (() => unknown)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-redis-tls-'));
  files = { ca: join(folder, 'ca.pem'), cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  await writeClientFiles(authority);
});
afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp();
  await rm(folder, { recursive: true, force: true });
});

async function writeClientFiles(by: typeof authority): Promise<void> {
  const { cert, key } = by.issue('parley');
  await Promise.all([writeFile(files.ca, by.cert), writeFile(files.cert, cert), writeFile(files.key, key)]);
}

interface TlsServer {
  readonly address: string;
  readonly redis: RedisProcess;
}

/** Only clients with a certificate of the authority get in. */
async function startServer(by: typeof authority, config: readonly string[] = [], at?: number): Promise<TlsServer> {
  const dataDir = await mkdtemp(join(folder, 'server-'));
  const [port, tlsPort] = [await freePort(), at ?? (await freePort())];
  const { cert, key } = by.issue('server');
  const names = { ca: join(dataDir, 'ca.pem'), cert: join(dataDir, 'cert.pem'), key: join(dataDir, 'key.pem') };
  await Promise.all([writeFile(names.ca, by.cert), writeFile(names.cert, cert), writeFile(names.key, key)]);
  const extraConfig = [
    `tls-port ${tlsPort}`,
    `tls-ca-cert-file ${names.ca}`,
    `tls-cert-file ${names.cert}`,
    `tls-key-file ${names.key}`,
    'tls-auth-clients yes',
    ...config,
  ];
  const redis = await startRedisProcess({ dataDir, port, password: PASSWORD, extraConfig });
  cleanUps.push(() => redis.stop());
  return { address: `rediss://:${PASSWORD}@127.0.0.1:${tlsPort}`, redis };
}

const withFiles = () => ({
  REDIS_TLS_CA_FILE: files.ca,
  REDIS_TLS_CERT_FILE: files.cert,
  REDIS_TLS_KEY_FILE: files.key,
});

/** Connects as a process with these variables does. */
function connect(variables: Record<string, string>, problems: string[] = []): RedisClient {
  const { redisUrl = '', redisTls } = parseConfig(variables);
  const client = connectRedis(redisUrl, {
    tls: tlsOptionsOf(redisTls, 'redis', { warn: (fields) => problems.push(JSON.stringify(fields)) }),
    onError: ({ message }) => problems.push(message),
    onMisfit: (why) => problems.push(why),
  });
  cleanUps.push(() => client.close());
  return client;
}

async function expectUse(client: RedisClient): Promise<void> {
  await waitForRedis(client, 60_000);
  // A cluster that was just formed refuses commands for a moment.
  await eventually(() => client.send('key', (node) => node.set('key', 'value')));
  expect((await client.values(['key'])).map(String)).toEqual(['value']);
  const handlers = { onMessage: () => undefined, onListening: () => undefined };
  const subscription = subscribeToRedis(client, 'channel', handlers);
  await eventually(() => expect(subscription.received).not.toBe(null));
  subscription.stop();
}

describe.skipIf(process.env['PARLEY_TEST_REDIS'] === 'cluster')('Redis with TLS', () => {
  it('is used with a CA and a client certificate of its own, and refused without, with the reason', async () => {
    const { address } = await startServer(authority);
    await expectUse(connect({ REDIS_URL: address, ...withFiles() }));
    const problems: string[] = [];
    const distrusting = connect({ REDIS_URL: address }, problems);
    await eventually(() =>
      expect(problems).toContainEqual(expect.stringMatching(/self-signed|unable to (?:get|verify)/)),
    );
    expect(distrusting.isReady).toBe(false);
    const unknown = connect({ REDIS_URL: address, REDIS_TLS_CA_FILE: files.ca }, problems);
    await eventually(() => expect(problems).toContainEqual(expect.stringMatching(/certificate required/)));
    expect(unknown.isReady).toBe(false);
  });

  it('is a cluster whose nodes have TLS', async () => {
    // By default, a node's bus has a port that clients of other tests may have.
    const bus = `cluster-port ${await freePort()}`;
    const { address } = await startServer(authority, ['cluster-enabled yes', 'tls-cluster yes', bus, 'appendonly no']);
    const problems: string[] = [];
    const one = connect({ REDIS_URL: address, ...withFiles() }, problems);
    await eventually(() => expect(problems).toContainEqual(expect.stringMatching(/give several of its nodes/)));
    await one.nodes()[0]?.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await expectUse(connect({ REDIS_URL: `${address},${address}`, ...withFiles() }));
  });

  it('is connected again with certificates that were replaced', async () => {
    const { address, redis } = await startServer(authority);
    const problems: string[] = [];
    const client = connect({ REDIS_URL: address, ...withFiles() }, problems);
    await expectUse(client);
    await redis.stop();
    await startServer(newer, [], Number(new URL(address).port));
    await eventually(() => expect(problems).toContainEqual(expect.stringMatching(/certificate/)), {
      timeoutMs: 20_000,
    });
    // Not yet a pair.
    await writeFile(files.cert, newer.issue('parley').cert);
    await eventually(() => expect(problems).toContainEqual(expect.stringMatching(/key values mismatch/)), {
      timeoutMs: 20_000,
    });
    await writeClientFiles(newer);
    await expectUse(client);
  });
});
