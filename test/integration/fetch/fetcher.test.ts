import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import * as tls from 'node:tls';
import * as zlib from 'node:zlib';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { VERSION } from '#libs/platform/config/index.ts';
import { createFetcher, type Fetcher, type FetcherOptions } from '#libs/platform/fetch/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type RawServer, response, startRawServer } from '#test/support/fetch/raw-server.ts';
import { makeCertificateAuthority } from '#test/support/kafka/certificates.ts';

let here: RawServer;
let there: RawServer;
let fetcher: Fetcher;

beforeAll(async () => {
  const used = new WeakSet<Socket>();
  here = await startRawServer((socket, path) => {
    const isKept = used.has(socket);
    used.add(socket);
    const [kind = '', argument = ''] = path.slice(1).split('=', 2);
    const text = decodeURIComponent(argument);
    if (kind === 'redirect') socket.write(response('moved', { location: text }, '302 Found'));
    else if (kind === 'circle')
      socket.write(response('', { location: text === 'a' ? '/circle=b' : '/circle=a' }, '302 Found'));
    else if (kind === 'see-other') socket.write(response('', { location: text }, '303 See Other'));
    else if (kind === 'same-method') socket.write(response('', { location: text }, '307 Temporary Redirect'));
    else if (kind === 'hops')
      socket.write(
        text === '0' ? response('there') : response('', { location: `/hops=${Number(text) - 1}` }, '301 Moved'),
      );
    else if (kind === 'coded') socket.write(response(codings[text]?.('text') ?? '', { 'content-encoding': text }));
    else if (kind === 'not-modified')
      socket.write(response('', { 'content-encoding': 'gzip', etag: '"1"' }, '304 Not Modified'));
    else if (kind === 'cookie') socket.write(response('', { 'set-cookie': 'a=b', __proto__x: '1', ETag: '"1"' }));
    else if (kind === 'once' && isKept) socket.resetAndDestroy();
    else if (kind === 'drops') drip(socket, Number(text));
    else if (kind !== 'silence') socket.write(response(path, { 'Content-Type': 'text/plain' }, '404 Not Found'));
  });
  there = await startRawServer((socket) => socket.write(response('elsewhere')));
});
afterAll(() => Promise.all([here.stop(), there.stop()]));

const codings: Readonly<Record<string, (text: string) => Buffer>> = {
  gzip: (text) => zlib.gzipSync(text),
  'X-GZIP': (text) => zlib.gzipSync(text),
  deflate: (text) => zlib.deflateSync(text),
  br: (text) => zlib.brotliCompressSync(text),
  zstd: (text) => zlib.zstdCompressSync(text),
  'utf-8': (text) => Buffer.from(text),
  'deflate, identity, br': (text) => zlib.brotliCompressSync(zlib.deflateRawSync(text)),
};

beforeEach(() => {
  fetcher = fetcherOf();
});
afterEach(() => fetcher.close());

function fetcherOf(options?: Pick<FetcherOptions, 'connectionsPerOrigin'>): Fetcher {
  return createFetcher({
    metrics: createMetrics({ processMetrics: false }),
    allowHosts: [here, there].map(({ port }) => ({ host: '127.0.0.1', port })),
    ...options,
  });
}

const at = (path: string, server = here): string => `http://127.0.0.1:${server.port}/${path}`;
const to = (url: string): string => encodeURIComponent(url);

describe('a response', () => {
  it('has its status, headers and body, whatever the status', async () => {
    const fetched = await fetcher.fetch(`${at('missing')}#part`);
    expect(fetched).toMatchObject({ status: 404, url: at('missing'), redirects: [], contentType: 'text/plain' });
    expect(Buffer.from(fetched.body).toString()).toBe('/missing');
    expect(fetched.headers.get('content-type')).toBe('text/plain');
  });

  it.each(Object.keys(codings))('is decoded: %s', async (coding) => {
    const { body } = await fetcher.fetch(at(`coded=${to(coding)}`));
    expect(Buffer.from(body).toString()).toBe('text');
  });

  it('of exactly the allowed length is whole, and with one byte more it is too large', async () => {
    expect((await fetcher.fetch(at('12345'), { maxBytes: 6 })).body).toHaveLength(6);
    await expect(fetcher.fetch(at('123456'), { maxBytes: 6 })).rejects.toMatchObject({ reason: 'too_large' });
  });

  it('without a body needs no decoding', async () => {
    expect(await fetcher.fetch(at('not-modified'))).toMatchObject({ status: 304, body: Buffer.alloc(0) });
    const head = await fetcher.fetch(at('coded=gzip'), { method: 'HEAD', maxBytes: 1 });
    expect(head).toMatchObject({ status: 200, body: Buffer.alloc(0) });
  });

  it('sets no cookies', async () => {
    expect((await fetcher.fetch(at('cookie'))).headers.has('set-cookie')).toBe(false);
    await fetcher.fetch(at('after'));
    expect(here.requests.at(-1)).not.toMatch(/^cookie:/im);
  });

  it('is read as it arrives when it is opened, and frees its connection when it is destroyed', async () => {
    const { body, status } = await fetcher.open(at('opened'));
    expect(status).toBe(404);
    expect(await body.toArray()).toEqual([Buffer.from('/opened')]);
    const unread = await fetcher.open(at('unread'));
    unread.body.destroy();
    await fetcher.close();
    await eventually(() => here.open === 0);
  });
});

describe('a request', () => {
  it('says what it is from, and carries the headers and the body of the caller', async () => {
    await fetcher.fetch(at('hook'), { method: 'post', headers: { 'X-Key': '1' }, accept: 'text/html', body: 'a=b' });
    const head = here.requests.at(-1) ?? '';
    expect(head.split('\r\n')).toEqual(
      expect.arrayContaining(['POST /hook HTTP/1.1', `user-agent: Parley/${VERSION}`, 'x-key: 1', 'accept: text/html']),
    );
    expect(head).toContain('accept-encoding: gzip, deflate, br, zstd');
    expect(head).toContain('content-length: 3');
  });

  it.each(['Host', 'Cookie', 'User-Agent', 'Connection', 'Transfer-Encoding'])('must not set %s', async (name) => {
    await expect(fetcher.fetch(at('own'), { headers: { [name]: 'x' } })).rejects.toThrow(TypeError);
  });

  it('takes no proxy from the environment', async () => {
    const before = there.accepted;
    process.env['HTTP_PROXY'] = process.env['http_proxy'] = at('', there);
    const unproxied = createFetcher({
      metrics: createMetrics({ processMetrics: false }),
      allowHosts: [{ host: '127.0.0.1', port: here.port }],
    });
    expect((await unproxied.fetch(at('direct'))).status).toBe(404);
    delete process.env['HTTP_PROXY'];
    delete process.env['http_proxy'];
    await unproxied.close();
    expect(there.accepted).toBe(before);
  });

  it('by a kept connection that the server closes is sent again if it changes nothing', async () => {
    const sent = (method: string) => here.requests.filter((head) => head.startsWith(`${method} /once`)).length;
    const keeping = fetcherOf({ connectionsPerOrigin: 1 });
    const fetchOnce = async (method: string) => {
      await keeping.fetch(at('keep'));
      return keeping.fetch(at('once'), { method });
    };
    for (const method of ['GET', 'HEAD']) {
      expect((await fetchOnce(method)).status).toBe(404);
      expect([method, sent(method)]).toEqual([method, 2]);
    }
    await expect(fetchOnce('POST')).rejects.toMatchObject({ reason: 'disconnected' });
    expect(sent('POST')).toBe(1);
    await keeping.close();
  });

  it('uses at most eight connections to one server', async () => {
    const [accepted, urls] = [here.accepted, Array.from({ length: 50 }, (_, index) => at(`page-${index}`))];
    const pages = await Promise.all(urls.map((url) => fetcher.fetch(url)));
    expect(pages.map(({ url }) => url)).toEqual(urls);
    expect(here.accepted - accepted).toBeLessThanOrEqual(8);
  });
});

describe('a redirect', () => {
  it('is followed five times, and reported', async () => {
    const seen: string[] = [];
    const fetched = await fetcher.fetch(at('hops=5'), { onRedirect: (url) => void seen.push(url) });
    const hops = [4, 3, 2, 1, 0].map((hop) => at(`hops=${hop}`));
    expect(fetched).toMatchObject({ status: 200, url: at('hops=0'), redirects: hops });
    expect(seen).toEqual(hops);
  });

  it('is not followed a sixth time, nor more often than the caller wants', async () => {
    const reason = 'too_many_redirects';
    await expect(fetcher.fetch(at('hops=6'))).rejects.toMatchObject({ reason, url: at('hops=0') });
    await expect(fetcher.fetch(at('hops=1'), { maxRedirects: 0 })).rejects.toMatchObject({ reason });
  });

  it('that the caller refuses is not followed', async () => {
    const refusal = new Error('not this one');
    const onRedirect = (): Promise<void> => Promise.reject(refusal);
    await expect(fetcher.fetch(at(`redirect=${to(at('', there))}`), { onRedirect })).rejects.toBe(refusal);
  });

  it('that leads back is a loop', async () => {
    const reason = 'redirect_loop';
    await expect(fetcher.fetch(at('circle=a'))).rejects.toMatchObject({ reason, url: at('circle=a') });
    await expect(fetcher.fetch(at('redirect='))).rejects.toMatchObject({ reason });
  });

  it('takes no secrets to another server, and keeps them at this one', async () => {
    const headers = { authorization: 'Bearer x', 'X-Api-Key': 'x', 'Accept-Language': 'de' };
    await fetcher.fetch(at('redirect=%2Fsame'), { headers });
    expect(here.requests.at(-1)).toMatch(/^authorization: Bearer x$/m);
    await fetcher.fetch(at(`redirect=${to(at('', there))}`), { headers });
    expect(there.requests.at(-1)).not.toMatch(/^(?:authorization|x-api-key)/im);
    expect(there.requests.at(-1)).toMatch(/^accept-language: de$/m);
  });

  it.each([
    ['redirect', 'POST', 'GET', false],
    ['see-other', 'POST', 'GET', false],
    ['see-other', 'PUT', 'GET', false],
    ['see-other', 'HEAD', 'HEAD', false],
    ['redirect', 'PUT', 'PUT', true],
    ['same-method', 'POST', 'POST', true],
  ])('%s after %s becomes %s', async (kind, method, next, keepsBody) => {
    const content = method === 'HEAD' ? {} : { body: 'a=b', headers: { 'Content-Type': 'text/x' } };
    await fetcher.fetch(at(`${kind}=%2Fnext`), { method, ...content });
    const head = here.requests.at(-1) ?? '';
    expect(head).toMatch(new RegExp(`^${next} /next `));
    expect([/^content-length: 3$/m.test(head), /^content-type: text\/x$/m.test(head)]).toEqual([keepsBody, keepsBody]);
  });
});

describe('a fetch ends', () => {
  it('with the reason of its signal, also if that is aborted already', async () => {
    const abort = new AbortController();
    const reason = new Error('enough');
    const fetching = fetcher.fetch(at('silence'), { signal: abort.signal });
    await eventually(() => here.requests.at(-1)?.startsWith('GET /silence') === true);
    abort.abort(reason);
    await expect(fetching).rejects.toBe(reason);
    const before = here.requests.length;
    await expect(fetcher.fetch(at('never'), { signal: abort.signal })).rejects.toBe(reason);
    expect(here.requests).toHaveLength(before);
  });

  it('when the fetcher is closed', async () => {
    const fetching = fetcher.fetch(at('silence'));
    await Promise.all([expect(fetching).rejects.toMatchObject({ reason: 'disconnected' }), fetcher.close()]);
    await expect(fetcher.fetch(at('late'))).rejects.toMatchObject({ reason: 'disconnected' });
  });
});

describe('with TLS', () => {
  const [trusted, unknown] = [makeCertificateAuthority('trusted'), makeCertificateAuthority('unknown')];
  const usual = tls.getCACertificates('default');
  beforeAll(() => tls.setDefaultCACertificates([...usual, trusted.cert]));
  afterAll(() => tls.setDefaultCACertificates(usual));

  async function outcomeOf(server: tls.Server, host = '127.0.0.1'): Promise<unknown> {
    const secure = await startRawServer((socket) => socket.write(response('secret')), { server, secure: true });
    const own = createFetcher({
      metrics: createMetrics({ processMetrics: false }),
      allowHosts: [{ host, port: secure.port }],
    });
    const outcome = await own.fetch(`https://${host}:${secure.port}/`).then(
      ({ status }) => status,
      (error: unknown) => error,
    );
    await own.close();
    await secure.stop();
    return outcome;
  }

  it('a server with a valid certificate answers', async () => {
    expect(await outcomeOf(createTlsServer(trusted.issue('127.0.0.1')))).toBe(200);
  });

  it('a certificate of an unknown authority, or of another host, is refused', async () => {
    const reason = 'tls_failed';
    expect(await outcomeOf(createTlsServer(unknown.issue('127.0.0.1')))).toMatchObject({ reason });
    expect(await outcomeOf(createTlsServer(trusted.issue('127.0.0.1')), 'localhost')).toMatchObject({ reason });
  });

  it('a server without TLS is refused, and one that is not there is not connected to', async () => {
    const server = createServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
    const talking = await startRawServer(() => undefined, { server });
    const plain = createFetcher({
      metrics: createMetrics({ processMetrics: false }),
      allowHosts: [talking.port, 1].map((port) => ({ host: '127.0.0.1', port })),
    });
    const failing = plain.fetch(`https://127.0.0.1:${talking.port}/`);
    await expect(failing).rejects.toMatchObject({ reason: 'tls_failed' });
    await expect(plain.fetch('https://127.0.0.1:1/')).rejects.toMatchObject({ reason: 'connect_failed' });
    await talking.stop();
    await plain.close();
  });
});

describe('slow servers', () => {
  it('hold the connections of one group only', async () => {
    const url = `http://127.0.0.1:${here.port}/silence`;
    const stop = new AbortController();
    const held = Array.from({ length: 20 }, () =>
      fetcher.fetch(url, { group: 'a', signal: stop.signal }).catch((error: unknown) => error),
    );
    await eventually(() => expect(here.open).toBeGreaterThanOrEqual(8));
    const { status } = await fetcher.fetch(`http://127.0.0.1:${here.port}/other`, { group: 'b' });
    expect(status).toBe(404);
    stop.abort(new Error('enough'));
    expect(await Promise.all(held)).toEqual(held.map(() => new Error('enough')));
  });

  it('are given up where they send less than the least rate', async () => {
    const metrics = createMetrics({ processMetrics: false });
    const allowHosts = [{ host: '127.0.0.1', port: here.port }];
    const impatient = createFetcher({ metrics, allowHosts, rateWindowMs: 300 });
    try {
      const url = `http://127.0.0.1:${here.port}/drops=1`;
      await expect(impatient.fetch(url, { leastBytesPerSecond: 1_000 })).rejects.toMatchObject({
        reason: 'too_slow',
        message: 'the server sends less than 1000 bytes a second',
      });
    } finally {
      await impatient.close();
    }
  });
});

/** A body of that many bytes at a time, which does not end. */
function drip(socket: Socket, bytes: number): void {
  socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n');
  const timer = setInterval(() => socket.write('x'.repeat(bytes)), 50);
  socket.on('close', () => clearInterval(timer));
}
