/** Why TLS with an event store fails: named for its operator, without its password. */
import { once } from 'node:events';
import { createSecureServer, createServer as createClear } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fault } from '#libs/kernel/faults.ts';
import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { makeCertificateAuthority } from '#test/support/kafka/certificates.ts';

const HOUR_MS = 3_600_000;

const authority = makeCertificateAuthority('CA of this test');
const good = authority.issue('store');
const selfSigned = authority.issue('store', { isSelfSigned: true });
const expired = authority.issue('store', { endsAt: Date.now() - HOUR_MS });
const ofAnotherHost = authority.issue('store', { address: [192, 0, 2, 7] });

const servers: Server[] = [];
let folder: string;
let trusted: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-handshake-'));
  await writeFile(join(folder, 'ca.pem'), authority.cert);
  trusted = `tlsCAFile=${join(folder, 'ca.pem')}`;
});
afterAll(async () => {
  for (const server of servers) server.close();
  await rm(folder, { recursive: true, force: true });
});

/** Answers the first bytes of each connection with `text`, and ends it. */
function talker(text: string): Server {
  return createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(text));
  });
}

describe('the reason why TLS with an event store fails', () => {
  it.each<readonly [string, () => Server, () => string, RegExp]>([
    ['a self-signed certificate', () => createSecureServer(selfSigned), () => 'tls=true', /self-signed.*tlsCAFile/],
    ['a certificate of an unknown CA', () => createSecureServer(good), () => 'tls=true', /CA.*not trusted.*tlsCAFile/],
    ['an expired certificate', () => createSecureServer(expired), () => trusted, /expired/],
    ['a certificate of another host', () => createSecureServer(ofAnotherHost), () => trusted, /another host/],
    ['a server without TLS', () => createClear(), () => trusted, /does not speak TLS.*tls=false/],
    ['a web server', () => talker('HTTP/1.1 400 Bad Request\r\n\r\n'), () => trusted, /does not speak TLS.*tls=false/],
    ['a server that hangs up', () => talker(''), () => trusted, /ends the connection/],
    [
      'old versions of TLS',
      () => createSecureServer({ ...good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' }),
      () => trusted,
      /version of TLS/,
    ],
    ['TLS without HTTP/2', () => createHttps({ ...good, ALPNProtocols: ['http/1.1'] }), () => trusted, /HTTP\/2/],
    [
      'a server that requires a certificate of its clients',
      () => createSecureServer({ ...good, ca: authority.cert, requestCert: true, rejectUnauthorized: true }),
      () => trusted,
      /certificate of the client.*userCertFile/,
    ],
    ['a server with TLS and an address without', () => createSecureServer(good), () => 'tls=false', /expects TLS/],
  ])('%s', async (_, create, options, why) => {
    const server = create().listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    for (const scheme of ['esdb', 'esdb+discover']) {
      const url = `${scheme}://admin:S3CRET@127.0.0.1:${port}?${options()}`;
      const { store, close } = await connectEventStore({ url });
      const fault: unknown = await store.ping().catch((error: unknown) => error);
      await close();
      expect(fault).toMatchObject({ code: 'store_unavailable', message: expect.stringMatching(why) });
      const { message, cause } = fault as Fault;
      // Shown by `/health/ready`, which is public: it names no host. The log has the cause, too.
      expect(message).toMatch(/^The event store is unavailable: EVENTSTORE_URL: /);
      expect(message).not.toContain('127.0.0.1');
      expect(String(cause)).toContain(`at 127.0.0.1:${port}`);
      expect(message + String(cause)).not.toContain('S3CRET');
    }
  });

  it('is nothing of TLS while no server listens', async () => {
    const { store, close } = await connectEventStore({ url: `esdb://127.0.0.1:1?${trusted}` });
    await expect(store.ping()).rejects.toMatchObject({ message: 'The event store is unavailable' });
    await close();
  });
});
