import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { deflateSync, crc32 } from 'node:zlib';

import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { buildGateway } from '#services/gateway/role.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { SAMPLE_FILES } from '#test/support/media-files.ts';
import { roleContext } from '#test/support/role-context.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { startWebsite, type Website } from '#test/support/website.ts';

const MEDIA = '/api/v1/media';
const MIB = 1024 * 1024;

let site: Website;
let api: DocumentsApi;
let url: string;

beforeAll(async () => {
  site = await startWebsite();
  api = await DocumentsApi.start({ fetch: { allowHosts: [{ host: '127.0.0.1', port: site.port }] } });
  url = await api.api.listen();
});
afterAll(async () => {
  await api?.stop();
  await site?.stop();
});

const picture = (width = 40, height = 20) => sharp({ create: { width, height, channels: 3, background: '#3366cc' } });

function upload(file: Uint8Array, query: Record<string, string> = {}, headers: Record<string, string> = {}) {
  const target = `${MEDIA}/uploads?${new URLSearchParams(query)}`;
  return api.call('POST', target, Buffer.from(file), { 'content-type': 'application/octet-stream', ...headers });
}

/** The item once it is `Ready` or `Failed`. */
function settled(id: string, key?: string) {
  return eventually(async () => {
    const { json } = await api.call('GET', `${MEDIA}/${id}`, undefined, {}, key);
    expect(json.status).toMatch(/^(Ready|Failed)/);
    return json;
  });
}

async function uploaded(file: Uint8Array, query: Record<string, string> = {}) {
  const { status, json } = await upload(file, query);
  expect(status).toBe(200);
  return settled(json.id);
}

const created = async (body: object) => settled((await api.call('POST', MEDIA, body)).json.id);

/** A file by its address, at the server that listens. */
async function fetchFile(address: string, init: RequestInit = {}) {
  const response = await fetch(new URL(new URL(address).pathname, url), init);
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
}

describe('an upload', () => {
  it('is queued, then measured as it is shown, and has a preview', async () => {
    const file = await picture(3000, 1500).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    const { json, headers } = await upload(file, { name: 'plan.jpg', description: 'The plan' });
    expect(json).toEqual({
      id: json.id,
      created: expect.any(String),
      modified: expect.any(String),
      name: 'plan.jpg',
      url: null,
      source_url: null,
      file_url: expect.stringMatching(/^http:/),
      description: 'The plan',
      status: 'Queued',
      format: '',
      resource_type: '',
      mime_type: '',
      bytes: file.length,
      width: 0,
      height: 0,
      pages: null,
      duration_ms: null,
      document_id: null,
      interaction_id: null,
      channel: null,
      message: null,
      sha256: createHash('sha256').update(file).digest('hex'),
    });
    expect(headers['etag']).toBe('"0"');
    const ready = await settled(json.id);
    expect(ready).toMatchObject({ status: 'Ready', format: 'jpg', resource_type: 'image', width: 1500, height: 3000 });
    const preview = await fetchFile(ready.url);
    expect(preview.headers.get('content-type')).toBe('image/webp');
    expect(await sharp(preview.body).metadata()).toMatchObject({ format: 'webp', width: 512, height: 1024 });
    expect((await fetchFile(ready.file_url)).body.equals(file)).toBe(true);
    const types = ['MediaCreated.v1', 'MediaProcessingStarted.v1', 'MediaProcessed.v1'];
    expect(await api.types(`media-${json.id}`)).toEqual(types);
  });

  it('happens once for an idempotency key, and another file is another request', async () => {
    const headers = { 'idempotency-key': newId() };
    const [first, again] = [await upload(Buffer.from('a'), {}, headers), await upload(Buffer.from('a'), {}, headers)];
    expect([again.json.id, again.headers['idempotency-replayed']]).toEqual([first.json.id, 'true']);
    expect((await upload(Buffer.from('b'), {}, headers)).status).toBe(422);
  });

  it('has at most 100 MiB, with or without a declared length', async () => {
    const target = `${url}${MEDIA}/uploads`;
    const headers = { authorization: api.api.rootKey, 'content-type': 'video/mp4' };
    const declared = request(target, { method: 'POST', headers: { ...headers, 'content-length': 100 * MIB + 1 } });
    declared.on('error', () => undefined).write(Buffer.alloc(MIB));
    const [{ statusCode }] = (await once(declared, 'response')) as [IncomingMessage];
    declared.destroy();
    expect(statusCode).toBe(413);

    const chunk = new Uint8Array(MIB);
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (sent++ < 101) controller.enqueue(chunk);
        else controller.close();
      },
    });
    // The server closes the connection while the client sends: clients see either.
    const status = await fetch(target, { method: 'POST', headers, body, duplex: 'half' } as RequestInit).then(
      (response) => response.status,
      () => 413,
    );
    expect(status).toBe(413);
  });

  it('is refused without content, compressed, or for a graph that does not exist', async () => {
    const empty = await upload(Buffer.alloc(0));
    expect([empty.status, empty.json.detail[0].type]).toEqual([422, 'value_error']);
    expect((await upload(Buffer.from('a'), {}, { 'content-encoding': 'gzip' })).status).toBe(415);
    const graph = await upload(Buffer.from('a'), { knowledge_graph: 'unknown' });
    expect([graph.status, graph.json.detail[0].loc]).toEqual([422, ['query', 'knowledge_graph']]);
  });
});

describe('an item with a source', () => {
  it('is fetched, and its type is that of the content', async () => {
    const body = await picture().png().toBuffer();
    site.pages.set('/a.txt', { headers: { 'content-type': 'text/plain' }, body });
    const item = await created({ source_url: `${site.origin}/a.txt`, name: 'a' });
    expect(item).toMatchObject({ status: 'Ready', format: 'png', width: 40, height: 20, bytes: body.length });
    expect(item.source_url).toBe(`${site.origin}/a.txt`);
    expect((await fetchFile(item.file_url)).body.equals(body)).toBe(true);
  });

  it('fails with the reason', async () => {
    expect(await created({ source_url: `${site.origin}/none` })).toMatchObject({
      status: 'Failed: the server answered 404',
      url: null,
      file_url: null,
    });
    const inner = await api.call('POST', MEDIA, { source_url: 'http://127.0.0.1:1/' });
    expect([inner.status, inner.json.detail[0].loc]).toEqual([422, ['body', 'source_url']]);
    site.pages.set('/inner', { status: 302, headers: { location: 'http://127.0.0.1:1/' } });
    expect((await created({ source_url: `${site.origin}/inner` })).status).toMatch(/^Failed: /);
    site.pages.set('/large', {
      answer: (_request, response) => response.writeHead(200, { 'content-length': 101 * MIB }).flushHeaders(),
    });
    const large = await created({ source_url: `${site.origin}/large` });
    expect(large.status).toBe('Failed: the file is larger than 100 MiB');
  });

  it('may be an empty object', async () => {
    const { json } = await api.call('POST', MEDIA, {});
    expect(json).toMatchObject({ name: '', status: 'Ready', url: null, source_url: null, file_url: null, format: '' });
  });
});

/** Of each kind of result, one; `file-inspector.test.ts` has the formats of each. */
const KINDS = new Set([
  'turned.jpg',
  'drawing.bmp',
  'turned.pdf',
  'encrypted.pdf',
  'tone.mp3',
  'turned.mp4',
  'archive.zip',
  'utf16.txt',
  'page.html',
  'unknown.bin',
]);

it('files of all kinds are known by their content, measured and previewed', async () => {
  const samples = SAMPLE_FILES.filter(({ name }) => IN_CAMPAIGN || KINDS.has(name));
  const items = await Promise.all(samples.map(async ({ make, name }) => uploaded(await make(), { name })));
  for (const [index, { name, expected }] of samples.entries()) {
    const item = items[index];
    const { mimeType, format, resourceType, width = 0, height = 0, pages = null, preview = null } = expected;
    expect(item).toMatchObject({ name, status: 'Ready', mime_type: mimeType, format, resource_type: resourceType });
    expect(item).toMatchObject({ width, height, pages });
    const shown = item.url === null ? null : await fetchFile(item.url);
    const type = typeof preview === 'string' ? 'text/plain; charset=utf-8' : preview && 'image/webp';
    expect(shown?.headers.get('content-type') ?? null).toBe(type);
  }
});

describe('hostile and other files', () => {
  it.each([
    [
      'a PNG that declares 30,000 x 30,000 pixels',
      () => hugePng(),
      /^Failed: the image has more than 25 million/,
      'png',
    ],
    ['an SVG with entities', () => Buffer.from(LAUGHS), /^Failed: SVG images are refused$/, 'svg'],
    ['a truncated JPEG', async () => (await noise(600)).subarray(0, 20_000), /^Failed: the file is damaged$/, 'jpg'],
    ['a PNG without pixels', () => hugePng().subarray(0, 20), /^Failed: the file is damaged$/, 'png'],
    ['a GIF that is JavaScript too', () => polyglot(), /^(Ready|Failed: the file is damaged)$/, 'gif'],
    ['a PDF that is none', () => Buffer.from('%PDF-1.7 nonsense'), /^Failed: the file is damaged$/, 'pdf'],
    ['a page', () => Buffer.from('<!doctype html><script>alert(1)</script>'), /^Ready$/, 'html'],
    ['a text in Latin-1', () => Buffer.from('Caf\u00e9', 'latin1'), /^Ready$/, 'txt'],
    ['random bytes', () => Buffer.concat([Buffer.from([0, 1, 2, 3]), randomBytes(1000)]), /^Ready$/, 'bin'],
  ])('%s ends with a status that says why', async (_what, make, status, format) => {
    const item = await uploaded(await make());
    expect(item).toMatchObject({ status: expect.stringMatching(status), format });
    const file = await fetchFile(item.file_url);
    expect(file.headers.get('x-content-type-options')).toBe('nosniff');
    expect(file.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox");
    expect(file.headers.get('content-type')).not.toMatch(/html|svg|script/);
    const isInline = ['png', 'jpg', 'gif', 'txt'].includes(format);
    expect(file.headers.get('content-disposition')).toMatch(isInline ? /^inline;/ : /^attachment;/);
  });

  it.each([
    ['../../etc/pass"wd\r\nx: y;é.txt', 'pass%22wdx%3A%20y%3B%C3%A9.txt'],
    ['C:\\a\\..\\b.txt', 'b.txt'],
    ['gpj.\u202Etxt.exe', 'gpj.txt.exe'],
    ["it's (1)*.txt", 'it%27s%20%281%29%2a.txt'],
    ['..', 'file'],
    ['🎉'.repeat(256), '%F0%9F%8E%89'.repeat(256)],
  ])('keep their name only as far as it is no path: %j', async (name, encoded) => {
    const item = await uploaded(Buffer.from('a'), { name });
    const { headers } = await fetchFile(item.file_url);
    expect(headers.get('content-disposition')).toBe(`inline; filename*=UTF-8''${encoded}`);
  });

  it('have a name of at most 256 characters', async () => {
    const { status, json } = await upload(Buffer.from('a'), { name: 'x'.repeat(1_024) });
    expect([status, json.detail[0]]).toMatchObject([422, { type: 'string_too_long', loc: ['query', 'name'] }]);
  });
});

describe('the address of a file', () => {
  it('answers ranges, conditions and HEAD', async () => {
    const file = randomBytes(300_000);
    const { file_url: address } = await uploaded(file);
    const part = async (range: string, headers = {}) => {
      const { status, body, headers: answered } = await fetchFile(address, { headers: { range, ...headers } });
      return [status, answered.get('content-range'), createHash('sha1').update(body).digest('hex')];
    };
    const of = (from: number, to: number) => createHash('sha1').update(file.subarray(from, to)).digest('hex');
    const whole = [200, null, of(0, 300_000)];
    expect(await part('bytes=0-0')).toEqual([206, 'bytes 0-0/300000', of(0, 1)]);
    expect(await part('bytes=299990-')).toEqual([206, 'bytes 299990-299999/300000', of(299_990, 300_000)]);
    expect(await part('bytes=-10')).toEqual([206, 'bytes 299990-299999/300000', of(299_990, 300_000)]);
    expect(await part('bytes=100-900000')).toEqual([206, 'bytes 100-299999/300000', of(100, 300_000)]);
    expect((await part('bytes=300000-')).slice(0, 2)).toEqual([416, 'bytes */300000']);
    expect((await part('bytes=-0'))[0]).toBe(416);
    for (const ignored of ['bytes=0-1,5-6', 'bytes=5-1', 'lines=1-2', 'bytes=-'])
      expect(await part(ignored)).toEqual(whole);
    const etag = `"${createHash('sha256').update(file).digest('hex')}"`;
    expect((await part('bytes=0-0', { 'if-range': etag }))[0]).toBe(206);
    expect(await part('bytes=0-0', { 'if-range': '"other"' })).toEqual(whole);
    expect(await fetchFile(address, { headers: { 'if-none-match': etag } })).toMatchObject({ status: 304 });
    const head = await fetchFile(address, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), head.body.length]).toEqual([200, '300000', 0]);
  });

  it('expires after 60 to 75 minutes', async () => {
    const { file_url: address } = await uploaded(Buffer.from('a'));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 59 * 60_000 });
    try {
      expect((await fetchFile(address)).status).toBe(200);
      vi.setSystemTime(Date.now() + 16 * 60_000);
      expect((await fetchFile(address)).status).toBe(404);
    } finally {
      vi.useRealTimers();
    }
  });

  it('answers 503 while the store of files lacks the file', async () => {
    const { blobs } = api.api.stores.platform;
    const file = randomBytes(100);
    const { file_url: address } = await uploaded(file);
    const hash = createHash('sha256').update(file).digest('hex');
    await blobs.remove(hash, { putBeforeMs: Date.now() + 60_000 });
    const missing = await fetchFile(address);
    expect([missing.status, missing.headers.get('retry-after')]).toEqual([503, '30']);
    await blobs.put([file] as never, { maxBytes: 100 });
    expect((await fetchFile(address)).body.equals(file)).toBe(true);
  });

  it('answers 503, and not for as long as the file may be kept, when the store fails after it gave the size', async () => {
    const { blobs } = api.api.stores.platform;
    const { file_url: address } = await uploaded(Buffer.from('a'));
    const read = vi.spyOn(blobs, 'read').mockResolvedValueOnce(null);
    try {
      const { status, headers } = await fetchFile(address);
      expect([status, headers.get('cache-control'), headers.get('etag')]).toEqual([503, null, null]);
    } finally {
      read.mockRestore();
    }
    expect((await fetchFile(address)).status).toBe(200);
  });

  it('is not guessed for long: requests are counted by address', async () => {
    const config = parseConfig({ RATE_LIMIT_PER_ADDRESS: '2' });
    const { server, stop } = await buildGateway(roleContext(api.api.stores.platform), config);
    try {
      const statuses: number[] = [];
      for (const token of 'abc') statuses.push((await server.app.inject(`${MEDIA}/files/${token}`)).statusCode);
      expect(statuses).toEqual([404, 404, 429]);
    } finally {
      await stop();
    }
  });

  it('is refused when it is changed, and after the item is deleted', async () => {
    const item = await uploaded(Buffer.from('secret'));
    const token = new URL(item.file_url).pathname.split('/').at(-1) ?? '';
    const missing = (await api.call('GET', `${MEDIA}/${newId()}`)).bytes;
    const first = token.startsWith('A') ? 'B' : 'A';
    for (const changed of [`${first}${token.slice(1)}`, token.slice(0, -4), `${token}AAAA`, 'x', '..%2f..%2fetc']) {
      const answer = await fetchFile(`http://x${MEDIA}/files/${changed}`);
      expect([answer.status, answer.body.toString()]).toEqual([404, missing]);
    }
    expect((await fetchFile(item.file_url)).body.toString()).toBe('secret');
    expect((await api.call('DELETE', `${MEDIA}/${item.id}`)).status).toBe(204);
    await eventually(async () => expect((await fetchFile(item.file_url)).status).toBe(404));
    expect((await api.call('GET', `${MEDIA}/${item.id}`)).bytes).toBe(missing);
  });
});

describe('the list', () => {
  it('is filtered by all parameters, their deprecated names, and shows nothing of others', async () => {
    const graph = await api.newGraph();
    const channel = (await api.call('POST', '/api/v1/channels', { name: 'Pictures' })).json.id;
    const png = await picture(8, 8).png().toBuffer();
    const { id } = await uploaded(png, { knowledge_graph: graph, channel, message: newId() });
    const { organizationId, userId } = api.api;
    const listed = async (query: Record<string, string>, key?: string) => {
      const target = `${MEDIA}?${new URLSearchParams({ knowledge_graph: graph, ...query })}`;
      const { json } = await api.call('GET', target, undefined, {}, key);
      return json.items.map((item: { id: string }) => item.id);
    };
    for (const query of [
      {},
      { resource_type: 'image', format: 'png' },
      { organization: organizationId, community: channel, twin: userId },
      { organization_id: organizationId, community_id: channel, twin_id: userId },
      { organization: organizationId, organization_id: 'other' },
    ]) {
      expect(await listed(query as Record<string, string>)).toEqual([id]);
    }
    for (const query of [
      { resource_type: 'video' },
      { format: 'p n g' },
      { organization: newId() },
      { community_id: newId() },
      { twin: newId(), twin_id: userId },
    ]) {
      expect(await listed(query as Record<string, string>)).toEqual([]);
    }
    expect(await listed({}, api.foreignKey)).toEqual([]);
    const missing = (await api.call('GET', `${MEDIA}/${newId()}`)).bytes;
    for (const method of ['GET', 'DELETE'] as const) {
      const foreign = await api.call(method, `${MEDIA}/${id}`, undefined, {}, api.foreignKey);
      expect([foreign.status, foreign.bytes]).toEqual([404, missing]);
    }
  });
});

const LAUGHS = `<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><text>&b;&c;</text></svg>`;

const noise = (size: number) =>
  sharp(randomBytes(size * size * 3), { raw: { width: size, height: size, channels: 3 } })
    .jpeg()
    .toBuffer();

function polyglot(): Buffer {
  return Buffer.concat([Buffer.from('GIF89a=1;alert(document.domain)//'), Buffer.alloc(64, ' ')]);
}

function hugePng(): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(30_000, 0);
  header.writeUInt32BE(30_000, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const pixels = deflateSync(Buffer.alloc(1_000_000));
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    ...[
      ['IHDR', header],
      ['IDAT', pixels],
      ['IEND', Buffer.alloc(0)],
    ].map(([type, data]) => pngChunk(String(type), data as Buffer)),
  ]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}
