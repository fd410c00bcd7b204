/** Documents under failures: workers that die or are replaced, interrupted writes, content that changes meanwhile. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DocumentContents } from '#libs/features/documents/document.content.ts';
import { documentIngestion, type ReactorParts } from '#libs/features/documents/document.reactor.ts';
import { type IngestionParts, IngestedDocuments } from '#libs/features/documents/ingestion.ts';
import {
  type DocumentPut,
  documentsModule,
  ExtractionPool,
  openExtractionPool,
} from '#libs/features/documents/index.ts';
import { outcomeUnknown } from '#libs/kernel/faults.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { openCore, openPlatform } from '#libs/platform/runtime/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';

let documents: DocumentsApi;
let graph: string;
let pool: ExtractionPool;

beforeAll(async () => {
  documents = await DocumentsApi.start({ hasWorker: false });
  graph = await documents.newGraph();
  pool = new ExtractionPool();
});
afterAll(async () => {
  await pool?.close();
  await documents?.stop();
});

const store = (): EventStore => documents.api.stores.platform.store;

/** A worker that handles one event of a document, by the number of the event. */
async function worker(
  id: string,
  revision: number,
  knowledge: Partial<ReactorParts['knowledge']> = {},
): Promise<Worker> {
  const { features, stores } = documents.api;
  const { contents } = features.documents;
  const parts = {
    contents,
    ingestedDocuments: { has: () => false },
    knowledge: { ...features.knowledge, ...knowledge },
    pool,
  };
  let event: StoredEvent | undefined;
  for await (const stored of store().readStream(`document-${id}`)) if (stored.revision === revision) event = stored;
  if (event === undefined) throw new Error('there is no such event');
  const { platform } = stores;
  return new Step(documentIngestion(parts), { store: platform.store, clock: platform.clock }, event);
}
type Worker = Pick<Step<never, never, never>, 'attempt'>;

const attempt = (failures = 0) => ({ failures, lastError: null, signal: new AbortController().signal });

/** Revisions of the document's contents that the graph has learnt facts of, and those before which they are withdrawn. */
async function factsOf(id: string) {
  const events = await documents.events(`graph-${graph}`);
  return {
    learnt: events.filter(({ data }) => data.source?.documentId === id).map(({ data }) => data.source.revision),
    withdrawn: events.filter(({ data }) => data.documentId === id).map(({ data }) => data.beforeRevision),
  };
}

/** Names of all nodes that search finds. */
async function found(id: string, words: string): Promise<string[]> {
  const { json } = await documents.call('GET', `/api/v1/knowledge/${id}/search?query=${words}&limit=50`);
  return json.nodes.map(({ name }: { name: string }) => name);
}

const context = (): CommandContext => ({
  commandId: newId(),
  organizationId: documents.api.organizationId,
  actor: { type: 'system', id: 'test' },
  at: new Date().toISOString(),
});
const put = (id: string, text: string, more: Partial<DocumentPut> = {}) =>
  documents.api.features.documents.put(context(), {
    id,
    knowledgeGraph: graph,
    name: 'Page',
    contentType: 'text/markdown',
    text,
    ...more,
  } as DocumentPut);
const types = async (id: string) =>
  (await documents.types(`document-${id}`)).map((type) => type.replaceAll(/^Document|\.v1$/g, ''));

describe('the ingestion of a document', () => {
  it('has one outcome when two workers do it at the same time', async () => {
    const id = newId();
    await put(id, '# One\n\nText.');
    const both = Promise.withResolvers<void>();
    let learning = 0;
    const { knowledge } = documents.api.features;
    const learn: typeof knowledge.learn = async (...args) => {
      if (++learning === 2) both.resolve();
      await both.promise;
      return knowledge.learn(...args);
    };
    const first = (await worker(id, 0, { learn })).attempt(attempt());
    // The second one finds that the first has started, so that it may have learnt something.
    await eventually(() => expect(learning).toBe(1));
    const second = (await worker(id, 0, { learn })).attempt(attempt());
    await Promise.all([first, second]);
    const third = await (await worker(id, 0, { learn: () => expect.unreachable() })).attempt(attempt());
    expect(third).toEqual({ kind: 'done', isGivenUp: false });
    expect(await types(id)).toEqual(['Created', 'IngestionStarted', 'Ingested']);
    expect(new Set((await factsOf(id)).learnt)).toEqual(new Set([0]));
  });

  it('learns nothing again when a worker has died after learning', async () => {
    const id = newId();
    await put(id, '# Dead\n\nWorker.');
    const { knowledge } = documents.api.features;
    const died = new AbortController();
    const learn: typeof knowledge.learn = async (...args) => {
      await knowledge.learn(...args);
      died.abort(new Error('killed'));
      return new Promise(() => undefined);
    };
    const dead = await (await worker(id, 0, { learn })).attempt({ ...attempt(), signal: died.signal });
    expect(dead).toMatchObject({ kind: 'again' });
    expect(await types(id)).toEqual(['Created', 'IngestionStarted']);
    expect(await (await worker(id, 0)).attempt(attempt())).toMatchObject({ kind: 'done' });
    expect(await types(id)).toEqual(['Created', 'IngestionStarted', 'Ingested']);
    expect((await factsOf(id)).learnt).toEqual([0]);
  });

  it('ends as failed after its last attempt, and starts again with the same content', async () => {
    const id = newId();
    await put(id, '# Cursed');
    const learn = () => Promise.reject(new Error('always'));
    expect(await (await worker(id, 0, { learn })).attempt(attempt())).toMatchObject({ kind: 'again', isFailure: true });
    expect(await (await worker(id, 0, { learn })).attempt(attempt(4))).toEqual({ kind: 'done', isGivenUp: true });
    expect((await documents.settled(id)).status).toBe('Failed: It cannot be processed');
    await put(id, '# Cursed');
    expect((await documents.get(id)).json.status).toBe('Queued');
    expect(await (await worker(id, 3)).attempt(attempt())).toMatchObject({ kind: 'done' });
    expect((await documents.settled(id)).status).toBe('Ready');
  });

  it('fails when its graph was deleted', async () => {
    const own = await documents.newGraph();
    const id = newId();
    await put(id, '# Homeless', { knowledgeGraph: own });
    await documents.call('DELETE', `/api/v1/knowledge/${own}`);
    expect(await (await worker(id, 0)).attempt(attempt())).toMatchObject({ kind: 'done' });
    expect((await documents.events(`document-${id}`)).at(-1)?.data).toEqual({
      reason: 'The knowledge graph was deleted',
    });
  });

  it('of content that was replaced meanwhile leaves no facts of it, however late', async () => {
    const own = await documents.newGraph();
    const id = newId();
    await put(id, '# Oldtimer\n\nOld text.', { knowledgeGraph: own });
    const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { knowledge } = documents.api.features;
    const learn: typeof knowledge.learn = async (...args) => {
      reached.resolve();
      await go.promise;
      return knowledge.learn(...args);
    };
    const slow = (await worker(id, 0, { learn })).attempt(attempt());
    await reached.promise;
    await put(id, '# Newcomer\n\nNew text.', { knowledgeGraph: own });
    expect(await (await worker(id, 2)).attempt(attempt())).toMatchObject({ kind: 'done' });
    go.resolve();
    await slow;
    expect(await types(id)).toEqual(['Created', 'IngestionStarted', 'Changed', 'IngestionStarted', 'Ingested']);
    expect(await found(own, '*')).toContain('Newcomer');
    expect(await found(own, '*')).not.toContain('Oldtimer');
    // Deleted: search finds none of it.
    await documents.api.features.documents.remove(context(), id);
    expect(await (await worker(id, 5)).attempt(attempt())).toMatchObject({ kind: 'done' });
    expect(await found(own, '*')).toEqual([]);
    expect((await types(id)).slice(5)).toEqual(['Deleted', 'FactsWithdrawn']);
  });
});

describe('a page that its crawl ingests', () => {
  const page = (id: string) => ({ id, knowledgeGraph: graph, crawlId: newId(), name: 'Page', url: null });
  interface Given {
    at?: string;
    learn?: IngestionParts['knowledge']['learn'];
    body?: string;
  }
  const crawled = async (id: string, { at, learn, body = 'Text.' }: Given = {}) => {
    const { features } = documents.api;
    const knowledge = { ...features.knowledge, ...(learn && { learn }) };
    const ingested = new IngestedDocuments(features.documents, { knowledge, pool });
    const text = { contentType: 'text/markdown', text: `# Crawled\n\n${body}` } as const;
    const { signal } = attempt();
    await ingested.put({ ...context(), ...(at && { at }) }, { ...page(id), ...text }, { signal, isNew: true });
    return ingested;
  };
  /** Learns the facts, and ends before that is recorded. */
  const thenDies: IngestionParts['knowledge']['learn'] = async (...args) => {
    await documents.api.features.knowledge.learn(...args);
    throw new Error('killed');
  };

  it('is ready when that returns, and nothing is left to the reactor', async () => {
    const id = newId();
    const ingested = await crawled(id);
    expect(await types(id)).toEqual(['Created', 'Ingested']);
    expect((await documents.get(id)).json.status).toBe('Ready');
    expect([ingested.has(id, streamRevision(0)), ingested.has(id, streamRevision(1))]).toEqual([true, false]);
    const unused = await (await worker(id, 0, { learn: () => expect.unreachable() })).attempt(attempt());
    expect(unused).toEqual({ kind: 'done', isGivenUp: false });
  });

  it('is learnt once when the crawl repeats it, while the reactor waits', async () => {
    const id = newId();
    await expect(crawled(id, { learn: thenDies })).rejects.toThrow('killed');
    const waiting = await (await worker(id, 0, { learn: () => expect.unreachable() })).attempt(attempt());
    expect(waiting).toMatchObject({ kind: 'again', isFailure: false });
    await crawled(id);
    expect(await types(id)).toEqual(['Created', 'Ingested']);
    expect((await factsOf(id)).learnt).toEqual([0]);
  });

  it('is changed where it was expected to be new', async () => {
    const id = newId();
    await crawled(id);
    await crawled(id);
    await crawled(id, { body: 'Other text.' });
    expect(await types(id)).toEqual(['Created', 'Ingested', 'Changed', 'Ingested']);
    expect(await factsOf(id)).toEqual({ learnt: [0, 2], withdrawn: [2] });
  });

  it('is ingested by the reactor when the crawl does not come back', async () => {
    const id = newId();
    const at = new Date(Date.now() - 61_000).toISOString();
    await expect(crawled(id, { at, learn: thenDies })).rejects.toThrow('killed');
    expect(await (await worker(id, 0)).attempt(attempt())).toMatchObject({ kind: 'done' });
    expect(await types(id)).toEqual(['Created', 'IngestionStarted', 'Ingested']);
    expect((await factsOf(id)).learnt).toEqual([0]);
  });
});

describe('the content of a document', () => {
  it('is completed by a second write after the first was interrupted, and read as it was written', async () => {
    const id = newId();
    const content = { body: Buffer.alloc(1_000_000, 'abc'), structured: { jsonLd: [{ '@type': 'Thing' }] } };
    let appends = 0;
    const broken = {
      ...documents.api.stores.platform,
      store: {
        append: (...args: Parameters<EventStore['append']>) =>
          ++appends > 2 ? Promise.reject(outcomeUnknown()) : store().append(...args),
      } as EventStore,
    };
    await expect(new DocumentContents(broken).write(context(), id, content)).rejects.toMatchObject({
      code: 'outcome_unknown',
    });
    const { contents } = documents.api.features.documents;
    const hashes = await Promise.all([1, 2, 3].map(() => contents.write(context(), id, content)));
    expect(new Set(hashes).size).toBe(1);
    expect(await documents.types(`content-${id}-${hashes[0]}`)).toHaveLength(4);
    const read = await contents.read(id, hashes[0] ?? '');
    expect(read.structured).toEqual(content.structured);
    expect(Buffer.compare(read.body, content.body)).toBe(0);
  });
});

describe('a document without a graph', () => {
  it('is ready at once, and is deleted without facts to withdraw', async () => {
    const id = newId();
    await put(id, '# Alone', { knowledgeGraph: null, crawlId: 'crawl-1', url: 'https://example.org/' });
    expect((await documents.get(id)).json).toMatchObject({ id, status: 'Ready', name: 'Page' });
    const listed = await documents.call('GET', '/api/v1/documents?crawl=crawl-1');
    expect(listed.json.items).toMatchObject([{ id }]);
    expect(await (await worker(id, 0)).attempt(attempt())).toMatchObject({ kind: 'done' });
    await documents.api.features.documents.remove(context(), id);
    expect(await (await worker(id, 1)).attempt(attempt())).toMatchObject({ kind: 'done' });
    expect(await types(id)).toEqual(['Created', 'Deleted']);
  });
});

it('a page that is read while the process closes its clients is given up', async () => {
  const { eventStore, redis, platform } = documents.api.stores;
  const { log } = platform;
  const metrics = createMetrics({ processMetrics: false });
  const options = { eventstoreUrl: eventStore.url, redisUrl: redis.url, log, metrics, tokenSecret: 'of this test' };
  const closing = await openPlatform(options);
  const extraction = openExtractionPool(openCore(closing, documentsModule.projections));
  const page = new TextEncoder().encode('<p>word <b>word</b>'.repeat(500_000));
  const source = { url: 'https://example.org/', contentType: 'text/html' };
  const given = extraction.readPage(page, source, { organizationId: newId() }).catch((error: unknown) => error);
  await closing.close();
  expect(await given).toMatchObject({ reason: 'closed' });
  await expect(extraction.readPage(page, source, { organizationId: newId() })).rejects.toMatchObject({
    reason: 'closed',
  });
});
