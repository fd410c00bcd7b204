/** Files that become documents of a graph and interactions of a channel, on all stores. */
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { documentIdOf } from '#libs/features/documents/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { DocumentsApi, DOCUMENTS } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { SAMPLE_FILES } from '#test/support/media-files.ts';

const MEDIA = '/api/v1/media';
const PAGE = `<!doctype html><title>Lighthouses</title><h1>Lighthouses</h1>
<p>The lighthouse of Bremerhaven stands in the sea since 1885.</p>`;

let api: DocumentsApi;
let graph: string;

beforeAll(async () => {
  api = await DocumentsApi.start();
  graph = await api.newGraph();
});
afterAll(async () => {
  await api?.stop();
});

// eslint-disable-next-line typescript/no-explicit-any -- tests assert the shape that they expect
type Json = any;

async function newChannel(key?: string): Promise<string> {
  return (await api.call('POST', '/api/v1/channels', { name: 'Harbour' }, {}, key)).json.id;
}

const archive = (channel: string) => api.call('POST', `/api/v1/channels/${channel}/archive`);

function upload(file: string | Uint8Array, query: Record<string, string>, key?: string) {
  const target = `${MEDIA}/uploads?${new URLSearchParams(query)}`;
  return api.call('POST', target, Buffer.from(file), { 'content-type': 'application/octet-stream' }, key);
}

function settled(id: string): Promise<Json> {
  return eventually(async () => {
    const { json } = await api.call('GET', `${MEDIA}/${id}`);
    expect(json.status).toMatch(/^(Ready|Failed)/);
    return json;
  });
}

async function uploaded(file: string | Uint8Array, query: Record<string, string>): Promise<Json> {
  const { status, json } = await upload(file, query);
  expect(status).toBe(200);
  return settled(json.id);
}

const factsOf = async (word: string) =>
  (await api.call('GET', `/api/v1/knowledge/${graph}/search?query=${word}`)).json.total_nodes;

const postsIn = async (channel: string): Promise<Json[]> =>
  (await api.call('GET', `/api/v1/channels/${channel}/interactions`)).json.items;

const fileOf = async (name: string) => (await SAMPLE_FILES.find((one) => one.name === name)?.make()) ?? '';

const png = () =>
  sharp({ create: { width: 40, height: 20, channels: 3, background: '#3366cc' } })
    .png()
    .toBuffer();

/** Handles the newest event of its type as another worker does. */
async function attempt(reactorName: string, id: string, type: string) {
  const { features, stores } = api.api;
  const reactor = features.reactors.find(({ name }) => name === reactorName);
  let event: StoredEvent | undefined;
  for await (const one of stores.platform.store.readStream(`media-${id}`)) if (one.type === type) event = one;
  if (event === undefined || reactor === undefined) throw new Error('there is no such event or reactor');
  const step = new Step(reactor, stores.platform, event);
  return step.attempt({ failures: 0, lastError: null, signal: new AbortController().signal });
}

const delivered = (id: string) => attempt('media-delivery', id, 'MediaProcessed.v1');

/** Runs without the worker of the test, on an item whose file is processed and not delivered. */
async function withProcessed(
  file: string | Uint8Array,
  query: Record<string, string>,
  run: (id: string) => Promise<void>,
) {
  await api.stopWorker();
  try {
    const { id } = (await upload(file, query)).json;
    await attempt('media-processing', id, 'MediaCreated.v1');
    // The projector applies what the attempt has recorded.
    await eventually(async () =>
      expect((await api.call('GET', `${MEDIA}/${id}`)).json).toMatchObject({ status: 'Processing' }),
    );
    await run(id);
    return id;
  } finally {
    await api.startWorker();
  }
}

it('a file that the store lacks for a while is waited for', async () => {
  const { blobs } = api.api.stores.platform;
  const file = Buffer.from('The buoy drifts to the north.');
  const { hash } = await blobs.put([file] as never, { maxBytes: 1_000 });
  const lost = () => blobs.remove(hash, { putBeforeMs: Date.now() + 60_000 });
  const waits = { kind: 'again', isFailure: false };
  await api.stopWorker();
  const { id } = (await upload(file, { knowledge_graph: graph })).json;
  try {
    await lost();
    expect(await attempt('media-processing', id, 'MediaCreated.v1')).toMatchObject(waits);
    await blobs.put([file] as never, { maxBytes: 1_000 });
    await attempt('media-processing', id, 'MediaCreated.v1');
    await lost();
    expect(await delivered(id)).toMatchObject(waits);
    await blobs.put([file] as never, { maxBytes: 1_000 });
  } finally {
    await api.startWorker();
  }
  expect(await settled(id)).toMatchObject({ status: 'Ready' });
});

describe('a file for a graph', () => {
  it('becomes a document that names the item, and is removed with it', async () => {
    const item = await uploaded(PAGE, { knowledge_graph: graph, name: 'lighthouses.html' });
    expect(item).toMatchObject({ status: 'Ready', interaction_id: null });
    expect(await api.settled(item.document_id)).toMatchObject({
      status: 'Ready',
      external_id: item.id,
      name: 'lighthouses.html',
    });
    expect(await factsOf('bremerhaven')).toBeGreaterThan(0);
    expect((await api.call('DELETE', `${MEDIA}/${item.id}`)).status).toBe(204);
    await eventually(async () => {
      expect((await api.call('GET', `${DOCUMENTS}/${item.document_id}`)).status).toBe(404);
      expect(await factsOf('bremerhaven')).toBe(0);
    });
    expect((await api.types(`media-${item.id}`)).at(-1)).toBe('MediaDocumentRemoved.v1');
  });

  it('becomes none without text, or if its text cannot be read', async () => {
    expect(await uploaded(await png(), { knowledge_graph: graph })).toMatchObject({
      status: 'Ready',
      document_id: null,
    });
    expect(await uploaded(await fileOf('encrypted.pdf'), { knowledge_graph: graph })).toMatchObject({
      status: 'Failed: it was not learnt: the PDF is protected by a password',
      file_url: expect.stringMatching(/^http/),
      format: 'pdf',
      document_id: null,
    });
  });

  it('is read in the charset of the file, and has at most 5 MiB of it', async () => {
    const line = 'Der Leuchtturm steht in Norderney-Süd. ';
    const text = Buffer.from(`${line}\n${' '.repeat(6 * 1024 * 1024)}`, 'latin1');
    const item = await uploaded(text, { knowledge_graph: graph, name: 'a.txt' });
    expect(item).toMatchObject({ status: 'Ready', bytes: text.length });
    expect(await api.settled(item.document_id)).toMatchObject({ status: 'Ready' });
    expect(await factsOf('Norderney-Süd')).toBeGreaterThan(0);
  });

  it('becomes one of any graph when a document names the item, and that stays without it', async () => {
    const item = await uploaded('# Piers\n\nThe pier of Sassnitz is long.', { name: 'piers.md' });
    const body = { knowledge_graph: graph, media: item.id, content_type: 'text/markdown', external_id: 'piers' };
    const created = await api.call('POST', DOCUMENTS, body);
    expect([created.status, created.json.name, created.json.external_id]).toEqual([200, 'piers.md', 'piers']);
    expect((await api.call('DELETE', `${MEDIA}/${item.id}`)).status).toBe(204);
    expect(await api.settled(created.json.id)).toMatchObject({ status: 'Ready' });
    expect(await factsOf('Sassnitz')).toBeGreaterThan(0);
    expect((await api.call('POST', DOCUMENTS, body)).json.detail[0].loc).toEqual(['body', 'media']);
  });

  it('becomes none if it has no text, is too large, is not ready, or is stated to be of another kind', async () => {
    const create = (media: string, more: object = {}) =>
      api.call('POST', DOCUMENTS, { knowledge_graph: graph, media, ...more });
    const image = await create((await uploaded(await png(), {})).id);
    expect([image.status, image.json.detail[0].msg]).toEqual([422, expect.stringContaining('image/png')]);
    const { id } = await uploaded('Text', {});
    expect((await create(id, { content_type: 'application/pdf' })).json.detail[0].loc).toEqual([
      'body',
      'content_type',
    ]);
    expect((await create(id, { text: 'a' })).json.detail[0].loc).toEqual(['body', 'media']);
    expect((await create((await uploaded('a'.repeat(5 * 1024 * 1024 + 1), {})).id)).status).toBe(413);
    const { id: empty } = (await api.call('POST', MEDIA, { name: 'no file' })).json;
    expect((await create(empty)).json.detail[0].loc).toEqual(['body', 'media']);
  });

  it('leaves no document when the item is deleted while a worker puts it', async () => {
    const { documents } = api.api.features;
    const id = await withProcessed('The buoy drifts.', { knowledge_graph: graph }, async (item) => {
      const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const { put } = documents;
      documents.put = async (...args) => {
        documents.put = put;
        reached.resolve();
        await go.promise;
        return documents.put(...args);
      };
      const late = delivered(item);
      await reached.promise;
      expect((await api.call('DELETE', `${MEDIA}/${item}`)).status).toBe(204);
      expect(await attempt('media-delivery', item, 'MediaDeleted.v1')).toMatchObject({ kind: 'done' });
      go.resolve();
      await late;
    });
    const { items } = (await api.call('GET', `${DOCUMENTS}?knowledge_graph=${graph}&size=100`)).json;
    expect(items.filter((one: Json) => one.external_id === id)).toEqual([]);
    expect(await api.types(`document-${documentIdOf(api.api.organizationId, graph, id)}`)).toContain(
      'DocumentDeleted.v1',
    );
  });

  it('is kept when the graph was deleted meanwhile, and the status says so', async () => {
    const own = await api.newGraph();
    const id = await withProcessed('The buoy drifts.', { knowledge_graph: own }, async () => {
      expect((await api.call('DELETE', `/api/v1/knowledge/${own}`)).status).toBe(204);
    });
    expect(await settled(id)).toMatchObject({
      status: 'Failed: it was not learnt: the knowledge graph was deleted',
      file_url: expect.stringMatching(/^http/),
    });
  });
});

describe('a file for a channel', () => {
  it('is posted once as its creator, however often workers die', async () => {
    const channel = await newChannel();
    const commands = api.api.features.channels.interactions;
    const item = await withProcessed(await png(), { channel, name: 'plan.png' }, async (id) => {
      const { post } = commands;
      commands.post = async (...args) => {
        commands.post = post;
        await commands.post(...args);
        throw new Error('killed after the post, before it is recorded');
      };
      expect(await delivered(id)).toMatchObject({ kind: 'again' });
      expect(await postsIn(channel)).toHaveLength(1);
      await Promise.all([delivered(id), delivered(id)]);
    });
    const ready = await settled(item);
    const posts = await postsIn(channel);
    expect(posts).toHaveLength(1);
    expect(posts[0]).toMatchObject({
      id: ready.interaction_id,
      participant: { type: 'authenticated_user', user_id: api.api.userId },
      content_role: 'user_message',
      complete: true,
      content: [
        {
          type: 'media',
          media_url: null,
          meta_data: {
            media_id: item,
            mime_type: 'image/png',
            width: 40,
            height: 20,
            description: 'plan.png',
            source_url: null,
          },
        },
      ],
    });
    expect(ready).toMatchObject({ status: 'Ready', url: expect.stringMatching(/^http/), document_id: null });
  });

  it('is refused for a channel that the organization does not have, or that is archived', async () => {
    const [archived, foreign] = [await newChannel(), await newChannel(api.foreignKey)];
    await archive(archived);
    for (const [channel, msg] of [
      [archived, 'the channel is archived'],
      [foreign, 'there is no such channel'],
      [newId(), 'there is no such channel'],
    ] as const) {
      const body = await api.call('POST', MEDIA, { channel });
      expect([body.status, body.json.detail[0].loc]).toEqual([422, ['body', 'channel']]);
      expect(body.json.detail[0].msg).toContain(msg);
      const query = await upload('a', { channel });
      expect([query.status, query.json.detail[0].loc]).toEqual([422, ['query', 'channel']]);
    }
  });

  it('is kept when the channel was archived meanwhile, and the status says so', async () => {
    const channel = await newChannel();
    const item = await withProcessed(await png(), { channel }, async () => {
      expect((await archive(channel)).status).toBe(200);
    });
    const failed = await settled(item);
    expect(failed).toMatchObject({
      status: 'Failed: it was not posted: the channel is archived',
      url: expect.stringMatching(/^http/),
      file_url: expect.stringMatching(/^http/),
      width: 40,
      interaction_id: null,
    });
    expect(await postsIn(channel)).toEqual([]);
  });
});
