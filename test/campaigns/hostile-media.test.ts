/* A worker gets files and pages that attack what reads them. Its memory counts as the kernel does: the peak of each process. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { nodeStart } from '#libs/platform/config/memory.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { HOSTILE_FILES, nestedPdfBomb, SAMPLE_FILES } from '#test/support/media-files.ts';
import { memoryPeakOf, memoryPeakOfTree } from '#test/support/memory.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';
import { html, startWebsite, type Website } from '#test/support/website.ts';

const MIB = 1024 * 1024;
/** PDFs that expand to gigabytes, at once, as documents; half as many as pages of a crawl. */
const BOMBS = Number(process.env['HOSTILE_PDFS'] ?? 4);
/** Each of them may take ten seconds. */
const TIMEOUT_MS = 150_000 + BOMBS * 15_000;
/** As within a small limit of memory: without one, the young generation alone may take 128 MiB more. */
const FLAGS = nodeStart({}, 768 * MIB).flags.join(' ');

let dataDir: string;
let api: DocumentsApi;
let worker: ParleyProcess;
let site: Website;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-hostile-'));
  site = await startWebsite();
  api = await DocumentsApi.start({
    hasWorker: false,
    blobsDir: join(dataDir, 'blobs'),
    fetch: { allowHosts: [{ host: '127.0.0.1', port: site.port }] },
  });
  const { eventStore, redis } = api.api.stores;
  worker = await startParleyProcess({
    role: 'worker',
    eventstoreUrl: eventStore.url,
    redisUrl: redis.url,
    env: { DATA_DIR: dataDir, FETCH_ALLOW_HOSTS: `127.0.0.1:${site.port}`, PARLEY_NODE_FLAGS: FLAGS },
    wait: false,
  });
}, TIMEOUT_MS);
afterAll(async () => {
  await worker?.stop();
  await api?.stop();
  await site?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function upload(content: Uint8Array): Promise<string> {
  const headers = { 'content-type': 'application/octet-stream' };
  const { status, json } = await api.call('POST', '/api/v1/media/uploads', Buffer.from(content), headers);
  expect(status).toBe(200);
  return json.id;
}

it(
  'hostile files end, all at once, in a worker that lives and has less than 512 MiB with its processes',
  async () => {
    let peak = 0;
    const watch = setInterval(() => {
      peak = Math.max(peak, memoryPeakOfTree(worker.pid));
    }, 10);
    try {
      const { pid } = worker;
      const files = [...HOSTILE_FILES, ...SAMPLE_FILES.map(({ name, make }) => ({ name, make, failure: null }))];
      const ids: string[] = [];
      for (const { make } of files) ids.push(await upload(await make()));
      for (const [index, { name, failure }] of files.entries()) {
        const status = await eventually(
          async () => {
            const { json } = await api.call('GET', `/api/v1/media/${ids[index]}`);
            expect(json.status).toMatch(/^(Ready|Failed)/);
            return json.status as string;
          },
          { timeoutMs: TIMEOUT_MS, everyMs: 50 },
        );
        const isAsExpected = (failure ?? /^Ready$/).test(status.replace(/^Failed: /, ''));
        expect([name, status, isAsExpected]).toEqual([name, status, true]);
      }
      expect(worker.alive() && worker.pid).toBe(pid);
    } finally {
      clearInterval(watch);
    }
    // On systems without /proc, both are 0.
    expect(peak).toBeLessThan(512 * MIB);
  },
  TIMEOUT_MS,
);

it(
  'PDFs that expand to gigabytes fail, as documents and as pages, in none of the memory of the worker itself',
  async () => {
    const bombOf = (n: number): Buffer =>
      Buffer.concat([nestedPdfBomb(n % 2 === 0 ? 1_024 : 2_560), Buffer.from(`%${n}`)]);
    const pages = Array.from({ length: BOMBS / 2 }, (_, n) => `/${n}.pdf`);
    site.pages.set('/', html('Start', { links: pages }));
    const headers = { 'content-type': 'application/pdf' };
    for (const [n, path] of pages.entries()) site.pages.set(path, { headers, body: bombOf(BOMBS + n) });
    const graph = await api.newGraph();
    const graphOfOther = await api.newGraph(api.foreignKey);
    const before = memoryPeakOf(worker.pid);

    const body = { url: `${site.origin}/`, knowledge_graph: graph, scan_depth: 2 };
    const crawl = await api.call('POST', '/api/v1/crawls', body);
    const ids: string[] = [];
    for (let n = 0; n < BOMBS; n += 1) {
      ids.push((await api.upload({ knowledge_graph: graph, name: `${n}` }, bombOf(n), 'application/pdf')).json.id);
    }
    const fine = { knowledge_graph: graphOfOther, name: 'fine', text: 'Vacation is 30 days.' };
    const other = await api.call('POST', '/api/v1/documents', fine, {}, api.foreignKey);
    await ends(`/api/v1/documents/${other.json.id}`, /^Ready$/, api.foreignKey);
    for (const id of ids) await ends(`/api/v1/documents/${id}`, TOO_LARGE);
    const { crawled_urls } = await ends(`/api/v1/crawls/${crawl.json.id}`, /^Completed/);
    const crawled = crawled_urls.filter(({ url }: { url: string }) => url.endsWith('.pdf'));
    expect(crawled).toHaveLength(pages.length);
    for (const { document_id } of crawled) await ends(`/api/v1/documents/${document_id}`, TOO_LARGE);
    expect(memoryPeakOf(worker.pid) - before).toBeLessThan(96 * MIB);
    expect(worker.alive()).toBe(true);
  },
  TIMEOUT_MS,
);

/** A busy machine may reach the limit of time first. */
const TOO_LARGE = /^Failed: Reading it takes (more than 384 MiB|longer than 10 s)$/;

/** @returns the item once its status has the form */
function ends(url: string, status: RegExp, key?: string) {
  return eventually(
    async () => {
      const { json } = await api.call('GET', url, undefined, {}, key);
      expect(json.status).toMatch(status);
      return json;
    },
    { timeoutMs: TIMEOUT_MS, everyMs: 50 },
  );
}
