/** What the tests of search by meaning share: a graph, an endpoint for embeddings on loopback, and indexes that use it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';

import { GraphSearch } from '#libs/features/knowledge/search/graph-search.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type EmbeddingServer, startEmbeddingServer } from '#test/support/knowledge/embedding-server.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

export const VEHICLES = {
  nodes: [{ name: 'Automobile', summary: 'Takes you to work' }, { name: 'Banana' }, { name: 'Cardinal' }],
  edges: [{ source: 'Ada', target: 'Automobile', fact: 'Ada owns a vehicle' }],
};

export const CONFIG = {
  apiKey: null,
  model: 'small',
  dimensions: null,
  queryPrefix: '',
  passagePrefix: '',
  minSimilarity: 0.35,
};

/** Starts the API and the endpoint for the file; closes the indexes of a test after it. */
export function useVectorSearch() {
  let api: TestApi;
  let server: EmbeddingServer;
  let folders: string;
  const opened: GraphSearch[] = [];

  beforeAll(async () => {
    [api, server] = await Promise.all([startTestApi(), startEmbeddingServer()]);
    folders = await mkdtemp(join(tmpdir(), 'parley-test-vectors-'));
  });
  afterAll(async () => {
    await Promise.all([api.stop(), server.stop()]);
    await rm(folders, { recursive: true, force: true });
  });
  afterEach(async () => {
    server.answer = null;
    await Promise.all(opened.splice(0).map((indexes) => indexes.close()));
  });

  const post = async (url: string, body: object) => {
    const answer = await api.call({ method: 'POST', url: `/api/v1/knowledge${url}`, key: api.rootKey, body });
    expect(answer.status).toBe(200);
    return answer.json;
  };

  async function graphOf(facts: object): Promise<string> {
    const { id } = await post('', { name: `Graph ${newId()}` });
    await post(`/${id}/facts`, facts);
    return id;
  }

  /** Indexes in a folder of the test's own, with the endpoint and metrics. */
  function open(name: string, more: Partial<EmbeddingConfig> = {}) {
    const metrics = createMetrics({ processMetrics: false });
    const { store } = api.stores.platform;
    const logged: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) });
    const config = { ...CONFIG, baseUrl: server.baseUrl, apiKey: 'of this test', ...more };
    const indexes = new GraphSearch({
      store,
      log,
      metrics,
      threads: 1,
      folder: join(folders, name),
      embedding: config,
    });
    opened.push(indexes);
    /** Repeats the question until it is answered by `ranking`: on a busy machine, a vector may come too late. */
    const ask = (id: string, query: string, question = {}, ranking = 'words_and_vectors') =>
      eventually(async () => {
        const found = await indexes.search(id, { query, limit: 10, ...question });
        expect(found?.ranking ?? ranking).toBe(ranking);
        return found;
      });
    /** Until all facts have vectors. */
    const whenEmbedded = (id: string, texts: number) =>
      eventually(async () => {
        await ask(id, 'car');
        expect(await metrics.scrape()).toContain(`parley_embedded_texts_total ${texts}\n`);
      });
    return { indexes, metrics, logged, ask, whenEmbedded };
  }

  return {
    get api() {
      return api;
    },
    get server() {
      return server;
    },
    /** The folder that indexes are below. */
    get folders() {
      return folders;
    },
    opened,
    post,
    graphOf,
    open,
  };
}
