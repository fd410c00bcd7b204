import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { documentIdOf } from '#libs/features/documents/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { DOCUMENTS, DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';

let documents: DocumentsApi;
let graph: string;
let origin: string;

beforeAll(async () => {
  documents = await DocumentsApi.start();
  graph = await documents.newGraph();
  origin = await documents.api.listen();
});
afterAll(() => documents?.stop());

const markdown = (text: string, more: object = {}) => ({
  knowledge_graph: graph,
  content_type: 'text/markdown',
  text,
  ...more,
});
/** What the graph has learnt from and withdrawn of a document. */
async function factsOf(id: string) {
  const events = await documents.events(`graph-${graph}`);
  return {
    learnt: events.filter(({ data }) => data.source?.documentId === id),
    withdrawn: events.filter(({ data }) => data.documentId === id).map(({ data }) => data.beforeRevision),
  };
}
const contentOf = (id: string, headers: Record<string, string> = {}) =>
  fetch(`${origin}${DOCUMENTS}/${id}/content`, { headers: { authorization: documents.api.rootKey, ...headers } });
const MIB = 1024 * 1024;

describe('a document', () => {
  it('is created as queued, answered as the contract has it, and ready once its facts are learnt', async () => {
    const created = await documents.call('POST', DOCUMENTS, markdown('# Ada\n\nShe wrote notes.', { name: 'Ada' }));
    expect(created.status).toBe(200);
    const { id } = created.json;
    expect(created.json).toEqual({
      id,
      created: expect.any(String),
      modified: expect.any(String),
      status: 'Queued',
      name: 'Ada',
      characters: null,
      left_out: [],
      external_id: null,
      data: null,
    });
    expect(created.headers['etag']).toBe('"0"');
    const ready = await documents.settled(id);
    expect(ready).toEqual({ ...created.json, status: 'Ready', characters: 23, modified: expect.any(String) });
    const { learnt } = await factsOf(id);
    expect(learnt.map(({ data }) => data.source)).toEqual([{ documentId: id, revision: 0, name: 'Ada', url: null }]);
    expect(JSON.stringify(learnt)).toContain('She wrote notes.');
    const types = ['DocumentCreated.v1', 'DocumentIngestionStarted.v1', 'DocumentIngested.v1'];
    expect(await documents.types(`document-${id}`)).toEqual(types);
  });

  it('gives back what it was created from, as a download', async () => {
    const text = '# Ada\n\nSie schrieb Notizen über Maschinen.';
    const markdownId = await documents.newDocument(markdown(text));
    const file = Buffer.from('<title>Seite</title><script>alert(1)</script>\xe4', 'latin1');
    const page = (await documents.upload({ knowledge_graph: graph }, file, 'text/html; charset=latin1')).json.id;
    const [first, second] = [await contentOf(markdownId), await contentOf(page)];
    expect(await first.text()).toBe(text);
    expect(first.headers.get('content-type')).toMatch(/^text\/markdown/);
    expect(Buffer.from(await second.arrayBuffer())).toEqual(file);
    expect(Object.fromEntries(second.headers)).toMatchObject({
      'content-type': 'text/html;charset=latin1',
      'content-disposition': `attachment; filename="${page}.html"`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    const etag = second.headers.get('etag')!;
    expect((await contentOf(page, { 'if-none-match': etag })).status).toBe(304);
  });

  it('of a data object shows that object', async () => {
    const data = { title: 'Notes', year: 1843, tags: ['engine'], nested: { a: null } };
    const id = await documents.newDocument({ knowledge_graph: graph, data, name: 'Notes', external_id: 'data-1' });
    expect(await documents.settled(id)).toMatchObject({ status: 'Ready', data, name: 'Notes', external_id: 'data-1' });
    expect(JSON.stringify((await factsOf(id)).learnt)).toContain('1843');
  });

  it('is changed by a second create with the same external id: facts of its former content are withdrawn', async () => {
    const first = await documents.newDocument(
      markdown('# Hours\n\nOpen from nine.', { name: 'Hours', external_id: 'hours' }),
    );
    expect(first).toBe(documentIdOf(documents.api.organizationId, graph, 'hours'));
    await documents.settled(first);
    expect(
      await documents.newDocument(markdown('# Hours\n\nOpen from ten.', { name: 'Hours', external_id: 'hours' })),
    ).toBe(first);
    await documents.settled(first);
    const { learnt, withdrawn } = await factsOf(first);
    expect(learnt.map(({ data }) => data.source.revision)).toEqual([0, 3]);
    expect(withdrawn).toEqual([3]);
    expect(JSON.stringify(learnt[1])).toContain('Open from ten.');
  });

  it('is not changed by a create with the same content', async () => {
    const same = markdown('# Same', { external_id: 'same' });
    const id = await documents.newDocument(same);
    const ready = await documents.settled(id);
    const again = await documents.call('POST', DOCUMENTS, same);
    expect(again.json).toEqual(ready);
    expect(await documents.types(`document-${id}`)).toHaveLength(3);
  });

  it('is one document when it is created many times at the same time', async () => {
    const body = markdown(`# Race\n\n${'word '.repeat(200_000)}`, { external_id: 'race' });
    const answers = await Promise.all(Array.from({ length: 8 }, () => documents.call('POST', DOCUMENTS, body)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const [id, ...others] = new Set<string>(answers.map(({ json }) => json.id));
    expect(others).toEqual([]);
    await documents.settled(id ?? '');
    const types = await documents.types(`document-${id}`);
    expect(types.filter((type) => type === 'DocumentCreated.v1' || type === 'DocumentChanged.v1')).toHaveLength(1);
    expect(
      (await documents.types(`content-${id}-${(await documents.events(`document-${id}`))[0]?.data.hash}`)).length,
    ).toBe(3);
  });

  it('is created once by a repeated request with an idempotency key', async () => {
    const headers = { 'idempotency-key': newId() };
    const create = () => documents.call('POST', DOCUMENTS, markdown('# Once'), headers);
    const [first, again] = [await create(), await create()];
    expect([again.json, again.headers['idempotency-replayed']]).toEqual([first.json, 'true']);
    const file = () =>
      documents.call('POST', `${DOCUMENTS}/uploads?knowledge_graph=${graph}`, Buffer.from('text'), {
        ...headers,
        'idempotency-key': `${headers['idempotency-key']}-file`,
        'content-type': 'text/plain',
      });
    expect((await file()).json.id).toBe((await file()).json.id);
  });

  it('is deleted: it is missing from then on, and its facts are withdrawn', async () => {
    const id = await documents.newDocument(markdown('# Gone', { external_id: 'gone' }));
    await documents.settled(id);
    expect(await documents.call('DELETE', `${DOCUMENTS}/${id}`)).toMatchObject({ status: 204, bytes: '' });
    const missing = await documents.get(newId());
    expect(await documents.get(id)).toMatchObject({ status: 404, bytes: missing.bytes });
    expect(await documents.call('DELETE', `${DOCUMENTS}/${id}`)).toMatchObject({ status: 404, bytes: missing.bytes });
    await eventually(async () => expect((await factsOf(id)).withdrawn).toEqual([3]));
    const listed = await documents.call('GET', `${DOCUMENTS}?knowledge_graph=${graph}&size=100`);
    expect(listed.json.items.map((item: { id: string }) => item.id)).not.toContain(id);
    // The same external id creates it again.
    expect(await documents.newDocument(markdown('# Gone', { external_id: 'gone' }))).toBe(id);
    expect(await documents.settled(id)).toMatchObject({ status: 'Ready', external_id: 'gone' });
  });

  it('honours If-Match and If-None-Match', async () => {
    const id = await documents.newDocument(markdown('# Tag'));
    await documents.settled(id);
    const { headers } = await documents.get(id);
    const etag = String(headers['etag']);
    const unchanged = await documents.call('GET', `${DOCUMENTS}/${id}`, undefined, { 'if-none-match': etag });
    expect(unchanged.status).toBe(304);
    const stale = await documents.call('DELETE', `${DOCUMENTS}/${id}`, undefined, { 'if-match': '"0"' });
    expect(stale.status).toBe(412);
    const current = await documents.call('DELETE', `${DOCUMENTS}/${id}`, undefined, { 'if-match': etag });
    expect(current.status).toBe(204);
  });
});

describe('the event stream of a document', () => {
  it('has each change of its status, and ends with the last one', async () => {
    const id = await documents.newDocument(markdown('# Live'));
    await documents.settled(id);
    const url = `${origin}${DOCUMENTS}/${id}/events?after=0`;
    const response = await fetch(url, { headers: { authorization: documents.api.rootKey } });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const types = (await response.text()).matchAll(/"type":"(document\.\w+)"/g);
    expect([...types].map(([, type]) => type)).toEqual(['document.queued', 'document.processing', 'document.ready']);
    const foreign = await fetch(url, { headers: { authorization: documents.foreignKey } });
    expect(foreign.status).toBe(404);
  });
});

describe('lists of documents', () => {
  it('are filtered by graph and status, newest first', async () => {
    const own = await documents.newGraph();
    const of = (text: string, content_type: string) =>
      documents.newDocument({ knowledge_graph: own, text, content_type });
    const [one, two] = [await of('one', 'text/plain'), await of('two', 'text/plain')];
    const broken = await documents.upload({ knowledge_graph: own }, Buffer.from('no PDF'), 'application/pdf');
    for (const id of [one, two, broken.json.id]) await documents.settled(id);
    const list = async (query: Record<string, string>) => {
      const { json } = await documents.call('GET', `${DOCUMENTS}?${new URLSearchParams(query)}`);
      return json.items.map(({ id }: { id: string }) => id);
    };
    expect(await list({ knowledge_graph: own })).toEqual([broken.json.id, two, one]);
    expect(await list({ knowledge_graph: own, status: 'Ready' })).toEqual([two, one]);
    expect(await list({ knowledge_graph: own, status: 'Failed' })).toEqual([broken.json.id]);
    const { status } = await documents.settled(broken.json.id);
    expect(await list({ knowledge_graph: own, status })).toEqual([broken.json.id]);
    expect(await list({ knowledge_graph: own, status: 'Queued' })).toEqual([]);
    expect(await list({ knowledge_graph: 'no such graph' })).toEqual([]);
    expect(await list({ crawl: newId() })).toEqual([]);
  });
});

describe('uploads', () => {
  it('take 5 MiB and not a byte more, and the content is what was sent', async () => {
    const file = Buffer.from(
      randomBytes(5 * MIB)
        .toString('base64')
        .slice(0, 5 * MIB),
    );
    const uploaded = await documents.upload({ knowledge_graph: graph, name: 'Big' }, file, 'text/plain');
    expect(uploaded.status).toBe(200);
    const [created] = await documents.events(`document-${uploaded.json.id}`);
    expect(created?.data).toMatchObject({ name: 'Big', contentType: 'text/plain', bytes: 5 * MIB });
    const parts = await documents.events(`content-${uploaded.json.id}-${created?.data.hash}`);
    const stored = Buffer.concat(parts.map(({ data }) => Buffer.from(data.base64, 'base64')));
    expect(stored.equals(file)).toBe(true);
    expect(await documents.settled(uploaded.json.id)).toMatchObject({ status: 'Ready' });
    const larger = await documents.upload({ knowledge_graph: graph }, Buffer.alloc(5 * MIB + 1, 'a'), 'text/plain');
    expect(larger.status).toBe(413);
    const text = await documents.call('POST', DOCUMENTS, { knowledge_graph: graph, text: 'ä'.repeat(2.5 * MIB + 1) });
    expect(text.status).toBe(413);
  });

  it('are decoded by their charset', async () => {
    const file = Buffer.from('Caf\u00e9 au lait', 'latin1');
    const { json } = await documents.upload(
      { knowledge_graph: graph, name: 'Menu' },
      file,
      'text/plain; charset=iso-8859-1',
    );
    await documents.settled(json.id);
    expect(JSON.stringify((await factsOf(json.id)).learnt)).toContain('Café au lait');
  });

  it('of HTML give the readable text, and take the name from the title', async () => {
    const html =
      '<html><head><title>Tea</title></head><body><nav>Menu</nav><h1>Tea</h1><p>Steep for 3 minutes.</p></body>';
    const { json } = await documents.upload({ knowledge_graph: graph }, Buffer.from(html), 'text/html');
    expect(await documents.settled(json.id)).toMatchObject({ status: 'Ready', name: '' });
    const learnt = JSON.stringify((await factsOf(json.id)).learnt);
    expect(learnt).toContain('Steep for 3 minutes.');
    expect(learnt).toContain('"name":"Tea"');
  });
});

/** A PDF of one page with one line; the parser finds its objects without a table of them. */
const pdf = (line: string, more = '') =>
  [
    '%PDF-1.4',
    '1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj',
    '2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj',
    '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj',
    `4 0 obj<</Length ${line.length + 31}>>stream`,
    `BT /F1 12 Tf 10 100 Td (${line}) Tj ET`,
    'endstream endobj',
    '5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj',
    `trailer<</Root 1 0 R${more}>>`,
  ].join('\n');

describe('PDF files', () => {
  it('give the text of their pages', async () => {
    const file = Buffer.from(pdf('Vacation is 30 days'));
    const { json } = await documents.upload({ knowledge_graph: graph, name: 'Handbook' }, file, 'application/pdf');
    expect(await documents.settled(json.id)).toMatchObject({ status: 'Ready' });
    expect(JSON.stringify((await factsOf(json.id)).learnt)).toContain('Vacation is 30 days');
  });

  it('say how much text was found, and how many pages hold none', async () => {
    const twoPages = pdf('Vacation is 30 days').replace('[3 0 R]/Count 1', '[3 0 R 6 0 R]/Count 2');
    const empty = '6 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\ntrailer';
    const file = Buffer.from(twoPages.replace('trailer', empty));
    const { json } = await documents.upload({ knowledge_graph: graph }, file, 'application/octet-stream');
    expect(json).toMatchObject({ characters: null, left_out: [] });
    expect(await documents.settled(json.id)).toMatchObject({
      status: 'Ready',
      characters: 19,
      left_out: [{ what: 'pages_without_text', count: 1 }],
    });
  });

  it('that are encrypted fail with the reason', async () => {
    const zeros = '0'.repeat(64);
    const encryption = `/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<${zeros}>/U<${zeros}>>>/ID[<00><00>]`;
    const { json } = await documents.upload(
      { knowledge_graph: graph },
      Buffer.from(pdf('x', encryption)),
      'application/pdf',
    );
    expect(await documents.settled(json.id)).toMatchObject({ status: 'Failed: The PDF is protected by a password' });
  });
});

describe('files of a type that says nothing', () => {
  it.each([
    ['notes.md', '# Heading\n\ntext', /^text\/markdown$/],
    ['page', '<!doctype html><p>text', /^text\/html$/],
    ['notes', 'text', /^text\/plain$/],
  ])('are read as their name or content says: %s', async (name, file, type) => {
    const given = { knowledge_graph: graph, name };
    const { json } = await documents.upload(given, Buffer.from(file), 'application/octet-stream');
    expect(await documents.settled(json.id)).toMatchObject({ status: 'Ready', left_out: [] });
    expect((await contentOf(json.id)).headers.get('content-type')).toMatch(type);
  });

  it('say that they hold no text', async () => {
    const { json } = await documents.upload({ knowledge_graph: graph }, Buffer.from('<html><img src=a>'), 'text/html');
    const left_out = [{ what: 'no_text', count: null }];
    expect(await documents.settled(json.id)).toMatchObject({ status: 'Ready', characters: 0, left_out });
  });
});

describe('hostile content', () => {
  const ends = async (file: string | Buffer, type: string) => {
    const { json, status } = await documents.upload({ knowledge_graph: graph }, Buffer.from(file), type);
    expect(status).toBe(200);
    return (await documents.settled(json.id)).status;
  };

  it.each([
    ['50,000 nested tags', '<div>'.repeat(50_000) + 'deep', 'text/html', /^Ready$/],
    ['5 MiB of opening brackets', '<'.repeat(5 * MIB), 'text/html', /^(Ready|Failed: .+)$/],
    ['deep JSON', '['.repeat(2 * MIB), 'application/json', /^(Ready|Failed: .+)$/],
    ['deep valid JSON', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'application/json', /^(Ready|Failed: .+)$/],
    ['JSON with __proto__', '{"__proto__":{"polluted":true},"a":1}', 'application/json', /^Ready$/],
    ['JSON that is none', '{"a":', 'application/json', /^(Ready|Failed: .+)$/],
    ['a PDF that is none', '%PDF-1.7 garbage', 'application/pdf', /^Failed: The file is not a readable PDF$/],
    ['zero bytes', '\0'.repeat(1000), 'text/plain', /^Ready$/],
  ])('%s ends with a status that says why', async (_what, file, type, expected) => {
    expect(await ends(file, type)).toMatch(expected);
  });
});

describe('invalid requests', () => {
  it.each([
    ['no graph', { text: 'a' }, ['body', 'knowledge_graph']],
    ['an unknown graph', { knowledge_graph: 'unknown', text: 'a' }, ['body', 'knowledge_graph']],
    ['no content', { knowledge_graph: '$graph' }, ['body', 'text']],
    ['two contents', { knowledge_graph: '$graph', text: 'a', data: {} }, ['body', 'data']],
    ['a media item', { knowledge_graph: '$graph', media: 'media-1' }, ['body', 'media']],
    [
      'a PDF as text',
      { knowledge_graph: '$graph', text: 'a', content_type: 'application/pdf' },
      ['body', 'content_type'],
    ],
    ['another type', { knowledge_graph: '$graph', text: 'a', content_type: 'text/csv' }, ['body', 'content_type']],
    ['data as HTML', { knowledge_graph: '$graph', data: {}, content_type: 'text/html' }, ['body', 'content_type']],
    ['data that is a list', { knowledge_graph: '$graph', data: [] }, ['body', 'data']],
    ['an empty external id', { knowledge_graph: '$graph', text: 'a', external_id: '' }, ['body', 'external_id']],
  ])('with %s are refused', async (_what, body, loc) => {
    const given = JSON.parse(JSON.stringify(body).replace('$graph', graph));
    const { status, json } = await documents.call('POST', DOCUMENTS, given);
    expect([status, json.detail[0].loc]).toEqual([422, loc]);
  });

  it('to upload are refused', async () => {
    const file = Buffer.from('a');
    const of = async (query: Record<string, string>, type: string, headers = {}) => {
      const url = `${DOCUMENTS}/uploads?${new URLSearchParams(query)}`;
      const answer = await documents.call('POST', url, file, { 'content-type': type, ...headers });
      return [answer.status, answer.json.detail[0]?.loc];
    };
    expect(await of({ knowledge_graph: graph }, 'text/csv')).toEqual([422, ['header', 'content-type']]);
    expect(await of({ knowledge_graph: 'unknown' }, 'text/plain')).toEqual([422, ['query', 'knowledge_graph']]);
    expect(await of({}, 'text/plain')).toEqual([422, ['query', 'knowledge_graph']]);
    for (const headers of [{ 'content-encoding': 'gzip' }, { 'content-type': 'nonsense' }]) {
      const [status] = await of({ knowledge_graph: graph }, 'text/plain', headers);
      expect(status).toBe(415);
    }
    const empty = await documents.call('POST', `${DOCUMENTS}/uploads?knowledge_graph=${graph}`, undefined, {
      'content-type': 'text/plain',
    });
    expect([empty.status, empty.json.detail[0].type]).toEqual([422, 'missing']);
    // Other routes still take JSON only.
    const other = await documents.call('POST', DOCUMENTS, file, { 'content-type': 'text/plain' });
    expect(other.status).toBe(415);
  });
});

describe("another organization's document", () => {
  it('is answered as a missing one, as is one whose graph is deleted', async () => {
    const own = await documents.newGraph();
    const id = await documents.newDocument({ knowledge_graph: own, text: 'secret', external_id: 'secret' });
    await documents.settled(id);
    const { foreignKey } = documents;
    const missing = await documents.get(newId(), foreignKey);
    expect(missing.status).toBe(404);
    expect((await documents.get(id, foreignKey)).bytes).toBe(missing.bytes);
    expect((await contentOf(id)).status).toBe(200);
    expect(await (await contentOf(id, { authorization: foreignKey })).text()).toBe(missing.bytes);
    const deleted = await documents.call('DELETE', `${DOCUMENTS}/${id}`, undefined, {}, foreignKey);
    expect([deleted.status, deleted.bytes]).toEqual([404, missing.bytes]);
    const body = { knowledge_graph: own, text: 'mine', external_id: 'secret' };
    expect((await documents.call('POST', DOCUMENTS, body, {}, foreignKey)).status).toBe(422);
    const foreign = await documents.call('GET', `${DOCUMENTS}?knowledge_graph=${own}`, undefined, {}, foreignKey);
    expect(foreign.json.items).toEqual([]);

    expect((await documents.get(id)).status).toBe(200);
    expect((await documents.call('DELETE', `/api/v1/knowledge/${own}`)).status).toBe(204);
    expect((await documents.get(id)).bytes).toBe(missing.bytes);
    expect(await (await contentOf(id)).text()).toBe(missing.bytes);
    expect((await documents.call('DELETE', `${DOCUMENTS}/${id}`)).bytes).toBe(missing.bytes);
    expect((await documents.call('POST', DOCUMENTS, body)).status).toBe(422);
    await eventually(async () => {
      const { json } = await documents.call('GET', `${DOCUMENTS}?size=100`);
      expect(json.items.map((item: { id: string }) => item.id)).not.toContain(id);
    });
  });

  it('is deleted with its graph, however many there are', async () => {
    const own = await documents.newGraph();
    const ids = await Promise.all(
      Array.from({ length: 101 }, (_, index) => documents.newDocument({ knowledge_graph: own, text: `Text ${index}` })),
    );
    expect((await documents.call('DELETE', `/api/v1/knowledge/${own}`)).status).toBe(204);
    await eventually(async () => {
      expect(await documents.types(`graphdocuments-${own}`)).toEqual(['GraphDocumentsDeleted.v1']);
    });
    const listed = await documents.call('GET', `${DOCUMENTS}?knowledge_graph=${own}`);
    expect(listed.json.meta.total).toBe(0);
    const remaining = await Promise.all(ids.map((id) => documents.get(id)));
    expect(new Set(remaining.map(({ status }) => status))).toEqual(new Set([404]));
  });
});
