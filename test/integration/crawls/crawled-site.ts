/** What the tests of crawls share: a website on loopback, with all stores, a worker and documents. */
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';

import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { type NameServer, startNameServer } from '#test/support/fetch/name-server.ts';
import { html, startWebsite, type Website } from '#test/support/website.ts';

export const CRAWLS = '/api/v1/crawls';

export let site: Website;
let names: NameServer;
export let api: DocumentsApi;
export let graph: string;
export let origin: string;

// eslint-disable-next-line typescript/no-explicit-any -- tests assert the shape that they expect
export type Json = any;

export async function requested(body: object): Promise<Json> {
  const reply = await api.call('POST', CRAWLS, { knowledge_graph: graph, url: `${site.origin}/`, ...body });
  expect(reply.bytes).toContain('"id"');
  return reply.json;
}

export function ended(id: string, timeoutMs = 30_000): Promise<Json> {
  return eventually(
    async () => {
      const { json } = await api.call('GET', `${CRAWLS}/${id}`);
      expect(json.status).toMatch(/^(Completed|Cancelled|Failed)/);
      return json;
    },
    { timeoutMs },
  );
}

export async function crawled(body: object = {}): Promise<Json> {
  return ended((await requested(body)).id);
}

export async function rescanned(id: string): Promise<Json> {
  const reply = await api.call('POST', `${CRAWLS}/${id}/rescan`);
  expect(reply).toMatchObject({ status: 200, json: { status: 'Queued' } });
  return ended(id);
}

/** `[path, outcome]` of the visited pages. */
export function outcomes(crawl: Json): [string, string][] {
  return crawl.crawled_urls.map(({ url, outcome }: Json) => [url.slice(site.origin.length), outcome]);
}

export function documentOf(crawl: Json, path: string): string {
  return crawl.crawled_urls.find(({ url }: Json) => url === `${site.origin}${path}`).document_id;
}

/** Sets the pages of the site: each a title, and links. */
export function publish(pages: Record<string, readonly string[]>): void {
  for (const [path, links] of Object.entries(pages)) site.pages.set(path, html(`Page ${path}`, { links }));
}

/** Starts the site and the API for the file; each test begins with an empty site. */
export function useCrawledSite(): void {
  beforeAll(async () => {
    site = await startWebsite();
    names = await startNameServer(({ type }) => ({ addresses: type === 'A' ? ['127.0.0.1'] : [] }));
    const allowHosts = ['127.0.0.1', 'site.test', 'www.site.test'].map((host) => ({ host, port: site.port }));
    api = await DocumentsApi.start({ fetch: { allowHosts, nameServers: [names.address] } });
    graph = await api.newGraph();
    origin = await api.api.listen();
  });
  afterAll(async () => {
    await api?.stop();
    await names?.stop();
    await site?.stop();
  });
  beforeEach(() => {
    site.pages.clear();
    site.requests.length = 0;
  });
}
