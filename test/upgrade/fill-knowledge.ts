/** Graphs with facts, documents, crawls, media and reports in all of their states. */
import { createHash } from 'node:crypto';
import { eventually } from '#test/support/eventually.ts';
import { SAMPLE_FILES } from '#test/support/media-files.ts';
import type { Caller } from './caller.ts';
import type { Neighbours } from './neighbours.ts';

export interface Knowledge {
  readonly graph: string;
  readonly channel: string;
  /** Ids of what was deleted or has no list, by the path of its list. */
  readonly ids: Readonly<Record<string, string[]>>;
}

export async function fillKnowledge(api: Caller, { site }: Neighbours, round: string): Promise<Knowledge> {
  const graph = await api.create('/api/v1/knowledge', { name: `Coast ${round}`, description: 'Of the north' });
  const deletedGraph = await api.create('/api/v1/knowledge', { name: `Deleted ${round}` });
  const channel = await api.create('/api/v1/channels', { name: `Harbour ${round}` });
  await writeFacts(api, graph);
  const media = await fillMedia(api, site.origin, graph, channel);
  const documents = await fillDocuments(api, graph, deletedGraph, media.text);
  const crawls = await fillCrawls(api, site.origin, graph, site.pages);
  await fillReports(api, graph, deletedGraph);
  return {
    graph,
    channel,
    ids: {
      '/api/v1/knowledge': [deletedGraph],
      '/api/v1/documents': documents,
      '/api/v1/crawls': crawls,
      '/api/v1/media': [media.deleted],
      '/api/v1/media/deletions': [media.deleted],
      '/api/v1/media/uploads': [media.upload],
    },
  };
}

async function writeFacts(api: Caller, graph: string): Promise<void> {
  const facts = `/api/v1/knowledge/${graph}/facts`;
  const manages = { source: 'Ada', name: 'manages', single_valued: true };
  const added = await api.post(facts, {
    nodes: [
      { name: 'Ada', summary: 'Runs the warehouse in Bremen', labels: ['Person'] },
      { name: 'Grace', labels: ['Person', 'Engineer'] },
    ],
    edges: [
      {
        ...manages,
        target: 'Warehouse Bremen',
        fact: 'Ada manages the warehouse in Bremen',
        valid_at: '2024-03-01T00:00:00Z',
      },
      { source: 'Ada', target: 'Grace', name: 'reports to', fact: 'Ada reports to Grace' },
    ],
  });
  await api.post(facts, {
    edges: [
      {
        ...manages,
        target: 'Warehouse Kiel',
        fact: 'Ada manages the warehouse in Kiel',
        valid_at: '2026-04-01T00:00:00Z',
      },
    ],
  });
  const { edges } = added;
  const [, reports] = Array.isArray(edges) ? (edges as { uuid: string }[]) : [];
  await api.post(`/api/v1/knowledge/${graph}/edges/${reports?.uuid}/end`, { invalid_at: '2026-05-01T00:00:00Z' });
  await api.patch(`/api/v1/knowledge/${graph}`, { description: 'Of the north sea' });
  await api.patch(`/api/v1/knowledge/${graph}`, { name: 'North Sea' });
}

async function fillDocuments(api: Caller, graph: string, deletedGraph: string, media: string): Promise<string[]> {
  const path = '/api/v1/documents';
  const create = (body: Record<string, unknown>): Promise<string> =>
    api.create(path, { knowledge_graph: graph, ...body });
  const hours = { name: 'Opening hours', external_id: 'hours', content_type: 'text/markdown' };
  const markdown = await create({ ...hours, text: '# Warehouse\n\nOpen from 9 to 17.\n\n- seats: 4\n- colour: red\n' });
  await settled(api, `${path}/${markdown}`);
  await create({ ...hours, text: '# Warehouse\n\nOpen from 8 to 18.\n\n| day | hour |\n|---|---|\n| Monday | 8 |\n' });
  const made = [markdown, await create({ name: 'Plain', text: 'Gulls eat fish, and bread.' })];
  made.push(
    await create({ name: 'Page', content_type: 'text/html', text: '<h1>Dunes</h1><p>Sand moves with the wind.</p>' }),
  );
  made.push(await create({ name: 'Fleet', data: { name: 'Van 7', seats: 3, parts: [{ name: 'Wheel', size: 17 }] } }));
  made.push(await create({ name: 'Of media', media }));
  for (const name of ['book.pdf', 'encrypted.pdf']) {
    const address = `${path}/uploads?knowledge_graph=${graph}&name=${name}`;
    made.push(await api.create(address, await sample(name), { 'content-type': 'application/pdf' }));
  }
  const deleted = await create({ name: 'Deleted', text: 'A wreck lies at the bottom of the sea.' });
  const orphan = await create({ knowledge_graph: deletedGraph, name: 'Orphan', text: 'Its graph is deleted.' });
  for (const id of [...made, deleted, orphan]) await settled(api, `${path}/${id}`);
  await api.delete(`${path}/${deleted}`);
  return [deleted, orphan];
}

async function fillCrawls(api: Caller, origin: string, graph: string, pages: Map<string, unknown>): Promise<string[]> {
  const path = '/api/v1/crawls';
  const crawl = (page: string): Promise<string> =>
    api.create(path, { url: `${origin}${page}`, knowledge_graph: graph, scan_depth: 3, max_pages: 10 });
  const whole = await crawl('/');
  const failed = await crawl('/missing');
  const deleted = await crawl('/b');
  for (const id of [whole, failed, deleted]) await settled(api, `${path}/${id}`);
  const former = pages.get('/b');
  pages.set(
    '/b',
    '<html><head><title>Ferries</title></head><body><p>The ferry to Helgoland leaves at ten.</p></body></html>',
  );
  await api.post(`${path}/${whole}/rescan`);
  await settled(api, `${path}/${whole}`);
  pages.set('/b', former);
  await api.delete(`${path}/${deleted}`);
  const slow = await crawl('/slow');
  await api.post(`${path}/${slow}/cancel`);
  await settled(api, `${path}/${slow}`);
  return [deleted];
}

async function fillMedia(api: Caller, origin: string, graph: string, channel: string) {
  const path = '/api/v1/media';
  const upload = async (name: string, rest = ''): Promise<string> =>
    api.create(`${path}/uploads?name=${name}${rest}`, await sample(name), {
      'content-type': 'application/octet-stream',
    });
  const made = [
    await upload('photo.jpg', `&channel=${channel}`),
    await upload('animated.gif'),
    await upload('tone.mp3'),
  ];
  made.push(await upload('book.pdf', `&knowledge_graph=${graph}&channel=${channel}&description=A%20book`));
  made.push(await upload('encrypted.pdf'));
  const text = await api.create(path, { source_url: `${origin}/file.txt`, name: 'Fetched', knowledge_graph: graph });
  const failed = await api.create(path, { source_url: `${origin}/missing`, name: 'Missing' });
  const deleted = await upload('still.webp', `&channel=${channel}&knowledge_graph=${graph}`);
  for (const id of [...made, text, failed, deleted]) await settled(api, `${path}/${id}`);
  await api.delete(`${path}/${deleted}`);
  // One resumable upload in two parts, and one that is not complete.
  const bytes = Buffer.alloc(5_000, createHash('sha256').update('parts').digest());
  const begin = async (name: string): Promise<string> => {
    const response = await api.fetch('POST', `${path}/uploads?name=${name}`, Buffer.alloc(0), {
      'upload-length': String(bytes.length),
    });
    return new URL(response.headers.get('location') ?? '', api.baseUrl).pathname;
  };
  const part = (address: string, from: number, to: number): Promise<unknown> =>
    api.patch(address, bytes.subarray(from, to), {
      'content-type': 'application/offset+octet-stream',
      'upload-offset': String(from),
    });
  const whole = await begin('parts.bin');
  await part(whole, 0, 2_000);
  await part(whole, 2_000, bytes.length);
  await settled(api, `${path}/${whole.split('/').at(-1)}`);
  const open = await begin('open.bin');
  await part(open, 0, 1_000);
  return { text, deleted, upload: open.split('/').at(-1) ?? '' };
}

async function fillReports(api: Caller, graph: string, deletedGraph: string): Promise<void> {
  const path = '/api/v1/reports';
  const ready = await api.create(path, {
    query: 'Where does the lighthouse of Bremerhaven stand?',
    knowledge_graph: graph,
  });
  await settled(api, `${path}/${ready}`);
  const followed = await api.create(path, { query: 'Which warehouse does Ada manage?', knowledge_graph: graph });
  await settled(api, `${path}/${followed}`);
  const nothing = await api.create(path, { query: 'quantum chromodynamics', knowledge_graph: graph });
  await settled(api, `${path}/${nothing}`);
  const cancelled = await api.create(path, { query: 'What of the [hang] ferry to Helgoland?', knowledge_graph: graph });
  await api.post(`${path}/${cancelled}/cancel`);
  const failed = await api.create(path, { query: 'What of wrecks?', knowledge_graph: deletedGraph });
  await api.delete(`/api/v1/knowledge/${deletedGraph}`);
  await settled(api, `${path}/${failed}`);
}

/** Waits until workers have nothing more to do with an entity. */
export async function settled(api: Caller, path: string): Promise<Record<string, unknown>> {
  return eventually(
    async () => {
      const entity = await api.get(path).catch(() => ({ status: 'Deleted' }));
      if (/^(?:Ready|Failed|Completed|Cancelled|Deleted|completed|failed|cancelled)/.test(String(entity.status)))
        return entity;
      throw new Error(`${path} is ${String(entity.status)}`);
    },
    { timeoutMs: 180_000, everyMs: 200 },
  );
}

async function sample(name: string): Promise<Buffer> {
  const file = SAMPLE_FILES.find((one) => one.name === name);
  if (file === undefined) throw new Error(`no sample file ${name}`);
  return Buffer.from(await file.make());
}
