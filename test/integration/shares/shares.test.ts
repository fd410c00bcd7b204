/** An organization gets its share of the workers, whatever another one waits for. */
import type { ServerResponse } from 'node:http';

import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';

import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { html, startWebsite, type Website } from '#test/support/website.ts';

/** More than the slots that one organization has. */
const MANY = 16;

let site: Website;
let slowSite: Website;
let api: DocumentsApi;
/** Responses that have begun and do not end. */
const open = new Set<ServerResponse>();

beforeAll(async () => {
  slowSite = await startWebsite();
  site = await startWebsite({
    '/': html('Fine'),
    '/file.txt': { body: 'fine', headers: { 'content-type': 'text/plain' } },
  });
  const allowHosts = [site, slowSite].map(({ port }) => ({ host: '127.0.0.1', port }));
  api = await DocumentsApi.start({ fetch: { allowHosts } });
});
afterAll(async () => {
  await slowSite?.stop();
  await api?.stop();
  await site?.stop();
});
beforeEach(() => {
  slowSite.requests.length = 0;
  for (const one of open) one.destroy();
  open.clear();
});

function silent(path: string): void {
  slowSite.pages.set(path, { answer: (_request, response) => void open.add(response) });
}

function ended(url: string, status: RegExp, key?: string) {
  return eventually(
    async () => {
      const { json } = await api.call('GET', url, undefined, {}, key);
      expect(json.status).toMatch(status);
      return json;
    },
    { timeoutMs: 60_000 },
  );
}

it('files that are fetched slowly hold up neither uploads nor the files of others', async () => {
  for (let n = 0; n < MANY; n += 1) {
    silent(`/${n}`);
    await api.call('POST', '/api/v1/media', { source_url: `${slowSite.origin}/${n}` });
  }
  await eventually(() => expect(open.size).toBeGreaterThanOrEqual(3));
  const file = Buffer.from('an upload');
  const headers = { 'content-type': 'application/octet-stream' };
  for (const key of [api.api.rootKey, api.foreignKey]) {
    const uploaded = await api.call('POST', '/api/v1/media/uploads', file, headers, key);
    await ended(`/api/v1/media/${uploaded.json.id}`, /^Ready$/, key);
  }
  const fetched = await api.call(
    'POST',
    '/api/v1/media',
    { source_url: `${site.origin}/file.txt` },
    {},
    api.foreignKey,
  );
  await ended(`/api/v1/media/${fetched.json.id}`, /^Ready$/, api.foreignKey);
  // Also of the same host.
  slowSite.pages.set('/fine.txt', { body: 'fine', headers: { 'content-type': 'text/plain' } });
  const other = await api.call(
    'POST',
    '/api/v1/media',
    { source_url: `${slowSite.origin}/fine.txt` },
    {},
    api.foreignKey,
  );
  await ended(`/api/v1/media/${other.json.id}`, /^Ready$/, api.foreignKey);
  expect(open.size).toBeGreaterThanOrEqual(3);
});

it('crawls of slow sites hold up no crawl of another organization', async () => {
  silent('/');
  for (let n = 0; n < MANY; n += 1)
    await api.call('POST', '/api/v1/crawls', { url: `${slowSite.origin}/`, name: `${n}` });
  await eventually(() => expect(open.size).toBeGreaterThan(0));
  const crawl = await api.call('POST', '/api/v1/crawls', { url: `${site.origin}/` }, {}, api.foreignKey);
  await ended(`/api/v1/crawls/${crawl.json.id}`, /^Completed/, api.foreignKey);
  expect(open.size).toBeGreaterThan(0);
});

it('runs without a model take few steps of one organization at a time, and none of another one waits for these', async () => {
  const newAgent = async (key?: string): Promise<string> =>
    (await api.call('POST', '/api/v1/agents', { name: 'Ada' }, {}, key)).json.id;
  const prompt = (agent: string, key?: string) =>
    api.call('POST', `/api/v1/agents/${agent}/prompt`, { prompt: 'What?' }, {}, key);
  const [own, other] = [[] as string[], await newAgent(api.foreignKey)];
  for (let n = 0; n < MANY; n += 1) own.push(await newAgent());
  const { store } = api.api.stores.platform;
  const append = store.append.bind(store);
  const gate = Promise.withResolvers<void>();
  let waiting = 0;
  let most = 0;
  const spy = vi.spyOn(store, 'append').mockImplementation(async (stream, revision, events) => {
    const [event] = events;
    if (event?.type === 'RunClaimed.v1' && event.metadata.organizationId === api.api.organizationId) {
      waiting += 1;
      most = Math.max(most, waiting);
      await gate.promise;
      waiting -= 1;
    }
    return append(stream, revision, events);
  });
  try {
    const many = own.map((agent) => prompt(agent));
    await eventually(() => expect(waiting).toBeGreaterThanOrEqual(4));
    expect(await prompt(other, api.foreignKey)).toMatchObject({ status: 200 });
    gate.resolve();
    expect((await Promise.all(many)).map(({ status }) => status)).toEqual(many.map(() => 200));
  } finally {
    gate.resolve();
    spy.mockRestore();
  }
  expect(most).toBe(4);
});
