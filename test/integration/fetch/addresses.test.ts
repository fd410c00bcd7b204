import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { parseAllowedHost } from '#libs/platform/config/index.ts';
import {
  createFetcher,
  type Fetched,
  type Fetcher,
  FetchError,
  type FetchOptions,
} from '#libs/platform/fetch/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { watchConnections, type WatchedConnections } from '#test/support/fetch/connections.ts';
import { type Answer, type NameServer, type Query, startNameServer } from '#test/support/fetch/name-server.ts';
import { type RawServer, response, startRawServer } from '#test/support/fetch/raw-server.ts';

/** In the part of IPv6 for hosts, and not allocated (IANA, 2026): public to Parley, without a host or a route. */
const NOWHERE = '2e00::1';
const LOOPBACK = '127.0.0.1';

/** Answers by name; a list changes with each query. */
const names: Readonly<Record<string, Answer | readonly Answer[]>> = {
  'loopback.test': { addresses: [LOOPBACK, '::1'] },
  'metadata.test': { addresses: ['169.254.169.254'] },
  'mapped.test': { addresses: ['::ffff:127.0.0.1'] },
  'nat64.test': { addresses: ['64:ff9b::7f00:1'] },
  'many.test': { addresses: Array.from({ length: 60 }, (_, index) => `127.0.0.${index + 1}`) },
  'alias.test': { addresses: [LOOPBACK], cname: 'loopback.test' },
  'rebinding.test': [{ addresses: [NOWHERE] }, { addresses: [LOOPBACK, '::1'] }],
  'mixed.test': { addresses: [LOOPBACK, '10.0.0.1', '::1', NOWHERE] },
  'empty.test': { addresses: [] },
  'silent.test': null,
  'site.test': { addresses: [LOOPBACK] },
  'moving.test': [{ addresses: [LOOPBACK] }, { addresses: ['127.0.0.2'] }],
};

function answerOf({ name, count }: Query): Answer | undefined {
  const known = names[name];
  return Array.isArray(known) ? (known as Answer[])[Math.min(count, known.length - 1)] : (known as Answer | undefined);
}

let nameServer: NameServer;
/** Where names that are refused lead, on all addresses of this machine. */
let trap: RawServer;
let trap6: RawServer;
let site: RawServer;
let fetcher: Fetcher;
let watched: WatchedConnections;

beforeAll(async () => {
  nameServer = await startNameServer(answerOf);
  trap = await startRawServer((socket) => socket.end(response('secret')), { address: '0.0.0.0' });
  trap6 = await startRawServer((socket) => socket.end(response('secret')), { address: '::1' });
  site = await startRawServer((socket, path) => {
    const location = decodeURIComponent(path.slice(1));
    socket.write(location === '' ? response('here') : response('', { location }, '302 Found'));
  });
});

afterAll(async () => {
  await Promise.all([nameServer.stop(), trap.stop(), trap6.stop(), site.stop()]);
});

beforeEach(() => {
  const ports = new Set([80, 443, site.port, trap.port, trap6.port]);
  watched = watchConnections((port) => ports.has(port));
  fetcher = fetcherFor(`site.test:${site.port}`, `moving.test:${site.port}`);
});

afterEach(async () => {
  watched.stop();
  await fetcher.close();
});

function fetcherFor(...hosts: readonly string[]): Fetcher {
  const allowHosts = hosts.map(parseAllowedHost).filter((host) => host !== null);
  return createFetcher({
    metrics: createMetrics({ processMetrics: false }),
    allowHosts,
    nameServers: [nameServer.address],
  });
}

async function outcomeOf(url: string, options?: FetchOptions): Promise<string> {
  const result: Fetched | FetchError = await fetcher.fetch(url, options).catch((error: unknown) => {
    if (error instanceof FetchError) return error;
    throw error;
  });
  return result instanceof FetchError ? result.reason : `${result.status} ${Buffer.from(result.body).toString()}`;
}

describe('an address that is not public gets no packet', () => {
  it.each([
    ['a literal', `http://${LOOPBACK}/`],
    ['a short literal', 'http://127.1/'],
    ['a number', 'http://2130706433/'],
    ['a hexadecimal number', 'http://0x7f.1/'],
    ['an IPv4-mapped literal', 'http://[::ffff:7f00:1]/'],
    ['a NAT64 literal', 'http://[64:ff9b::7f00:1]/'],
    ['the metadata service of a cloud', 'http://169.254.169.254/latest/meta-data/'],
    ['a name', 'http://loopback.test/'],
    ['a name with TLS', 'https://loopback.test/'],
    ['a name of the metadata service', 'http://metadata.test/'],
    ['a name of an IPv4-mapped address', 'http://mapped.test/'],
    ['a name of a NAT64 address', 'http://nat64.test/'],
    ['a name with 60 addresses', 'http://many.test/'],
    ['an alias', 'http://alias.test/'],
  ])('%s', async (_, url) => {
    expect(await outcomeOf(url)).toBe('address_refused');
    expect(watched).toMatchObject({ attempts: [], requested: 0 });
  });

  it('a name of this machine, with the resolver of the system', async () => {
    const system = createFetcher({ metrics: createMetrics({ processMetrics: false }) });
    await expect(system.fetch('http://localhost/')).rejects.toMatchObject({ reason: 'address_refused' });
    expect(watched.requested).toBe(0);
    await system.close();
  });

  it('through a redirect of an allowed host, to any of them', async () => {
    const targets = ['http://127.1/', 'http://[::1]/', 'http://169.254.169.254/', 'http://loopback.test/'];
    for (const target of targets) {
      expect(await outcomeOf(siteUrl(target))).toBe('address_refused');
    }
    expect(await outcomeOf(siteUrl(`http://${LOOPBACK}:${trap.port}/`))).toBe('port_refused');
    expect(await outcomeOf(siteUrl('file:///etc/passwd'))).toBe('scheme_refused');
    expect(await outcomeOf(siteUrl('//me@site.test/'))).toBe('userinfo_refused');
    // The connections to the host itself.
    expect(watched.attempts).toEqual(watched.attempts.map(() => LOOPBACK));
    expect([watched.requested, site.accepted]).toEqual([watched.attempts.length, watched.attempts.length]);
    expect([trap.accepted, trap6.accepted]).toEqual([0, 0]);
  });
});

describe('the address that was checked is the one that is connected to', () => {
  it('although the name has another one for the next query', async () => {
    expect(['connect_failed', 'timeout']).toContain(await outcomeOf('http://rebinding.test/', { timeoutMs: 1_000 }));
    expect(queriesOf('rebinding.test')).toEqual(['A', 'AAAA']);
    expect(await outcomeOf('http://rebinding.test/')).toBe('address_refused');
    expect(watched.attempts).toEqual([NOWHERE]);
    expect(watched.requested).toBe(1);
  });

  it('and of a name with public and other addresses, only the public ones', async () => {
    expect(['connect_failed', 'timeout']).toContain(await outcomeOf('http://mixed.test/', { timeoutMs: 1_000 }));
    expect(watched).toMatchObject({ attempts: [NOWHERE], requested: 1 });
  });

  it('and a new connection resolves the name again', async () => {
    const moving = `http://moving.test:${site.port}/`;
    expect(await outcomeOf(moving)).toBe('200 here');
    await fetcher.close();
    fetcher = fetcherFor(`moving.test:${site.port}`);
    expect(await outcomeOf(moving)).toBe('connect_failed');
    expect(watched.attempts).toEqual([LOOPBACK, '127.0.0.2']);
  });
});

describe('names', () => {
  it('that do not exist, or have no address, are not found', async () => {
    expect(await outcomeOf('http://missing.test/')).toBe('name_not_found');
    expect(await outcomeOf('http://empty.test/')).toBe('name_not_found');
  });

  it('whose servers do not answer end at the deadline', async () => {
    expect(await outcomeOf('http://silent.test/', { timeoutMs: 300 })).toBe('timeout');
    expect(watched.requested).toBe(0);
  });
});

describe('allowed hosts', () => {
  it('may have any address, at their port only', async () => {
    expect(await outcomeOf(`http://site.test:${site.port}/`)).toBe('200 here');
    expect(await outcomeOf(`http://site.test:${trap.port}/`)).toBe('port_refused');
    expect(await outcomeOf('http://site.test/')).toBe('address_refused');
    expect(await outcomeOf(`http://${LOOPBACK}:${site.port}/`)).toBe('port_refused');
    expect(trap.accepted).toBe(0);
  });

  it('may be addresses', async () => {
    await fetcher.close();
    fetcher = fetcherFor(`127.1:${site.port}`, `[::1]:${trap6.port}`);
    expect(await outcomeOf(`http://2130706433:${site.port}/`)).toBe('200 here');
    expect(await outcomeOf(`http://[0::1]:${trap6.port}/`)).toBe('200 secret');
    expect(await outcomeOf(`http://loopback.test:${trap6.port}/`)).toBe('port_refused');
  });
});

function siteUrl(location: string): string {
  return `http://site.test:${site.port}/${encodeURIComponent(location)}`;
}

function queriesOf(name: string): readonly string[] {
  return nameServer.queries
    .filter((query) => query.name === name)
    .map(({ type }) => type)
    .toSorted();
}
