/** Search by meaning, with an endpoint for embeddings on loopback and real stores. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { GraphSearch } from '#libs/features/knowledge/search/graph-search.ts';
import { EmbeddingEndpoint } from '#libs/features/knowledge/search/embedding-endpoint.ts';
import { openDataFolder } from '#infra/data-folder/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import { createFetcher } from '#libs/platform/fetch/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { runParley } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import {
  embedding,
  type EmbeddingServer,
  sendVectors,
  startEmbeddingServer,
} from '#test/support/knowledge/embedding-server.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

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

const VEHICLES = {
  nodes: [{ name: 'Automobile', summary: 'Takes you to work' }, { name: 'Banana' }, { name: 'Cardinal' }],
  edges: [{ source: 'Ada', target: 'Automobile', fact: 'Ada owns a vehicle' }],
};

const CONFIG = {
  apiKey: null,
  model: 'small',
  dimensions: null,
  queryPrefix: '',
  passagePrefix: '',
  minSimilarity: 0.35,
};

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

const names = (found: { readonly nodes: readonly { readonly name: string }[] } | null) =>
  found?.nodes.map(({ name }) => name);

describe('with an endpoint for embeddings, a search', () => {
  it('finds what words alone do not find, and says so', async () => {
    const id = await graphOf(VEHICLES);
    const { ask, whenEmbedded } = open('meaning');
    await whenEmbedded(id, 5);
    expect(
      (await api.call({ method: 'GET', url: `/api/v1/knowledge/${id}/search?query=car`, key: api.rootKey })).json,
    ).toMatchObject({ ranking: 'words', nodes: [{ name: 'Cardinal' }], total_nodes: 1, total_edges: 0 });
    expect(await ask(id, 'car')).toMatchObject({
      ranking: 'words_and_vectors',
      total_nodes: 2,
      total_edges: 1,
      edges: [{ fact: 'Ada owns a vehicle' }],
    });
    expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
    // A name that is found by its words and by its meaning comes before all that is found by one of them.
    expect(names(await ask(id, 'automobile'))?.[0]).toBe('Automobile');
    expect(server.headers.at(-1)).toMatchObject({ authorization: 'Bearer of this test' });
    expect(server.requests.at(-1)).toMatchObject({ model: 'small', input: [expect.any(String)] });
  });

  it('counts the same for any limit, and gives the same answer again', async () => {
    const id = await graphOf({ nodes: Array.from({ length: 70 }, (_, at) => ({ name: `Vehicle ${at}` })) });
    const { ask, whenEmbedded } = open('totals');
    await whenEmbedded(id, 70);
    const all = await ask(id, 'car', { limit: 50 });
    expect(all).toMatchObject({ total_nodes: 50, nodes: { length: 50 } });
    const few = await ask(id, 'car', { limit: 3 });
    expect(few).toEqual({ ...all, nodes: all?.nodes.slice(0, 3) });
    // All 70 by words; those that are near as well are not counted twice.
    expect(await ask(id, 'vehicle', { limit: 1 })).toMatchObject({ total_nodes: 70 });
  });

  it('finds by meaning what is visible at the time only', async () => {
    const id = await graphOf({
      edges: [
        { source: 'Ada', target: 'X', fact: 'a vehicle', invalid_at: '2001-01-01T00:00:00Z' },
        { source: 'Ada', target: 'X', fact: 'an automobile', valid_at: '2001-01-01T00:00:00Z' },
      ],
    });
    await post(`/${id}/facts`, { nodes: [{ name: 'Physician' }] });
    const { ask, whenEmbedded } = open('times');
    await whenEmbedded(id, 5);
    const facts = async (question: object) => (await ask(id, 'car', question))?.edges.map(({ fact }) => fact);
    expect(await facts({})).toEqual(['an automobile']);
    expect(await facts({ validAt: '2000-01-01T00:00:00Z' })).toEqual(['a vehicle']);
    expect(await facts({ asOf: { sequence: 1 } })).toEqual([]);
    expect(names(await ask(id, 'doctor'))).toEqual(['Physician']);
    expect(names(await ask(id, 'doctor', { asOf: { sequence: 2 } }))).toEqual([]);
    expect(await ask(id, '*', {}, 'newest')).toMatchObject({ total_nodes: 3 });
    expect(await ask(id, '!?', {}, 'words')).toMatchObject({ total_nodes: 0 });
  });

  it('asks for no text twice, also after its index was built again or another process asked', async () => {
    const id = await graphOf(VEHICLES);
    const { indexes, ask, whenEmbedded } = open('kept');
    await whenEmbedded(id, 5);
    const before = await ask(id, 'car');
    await indexes.close();
    rmSync(join(folders, 'kept', `${id}.sqlite`));
    const requests = server.requests.length;
    const again = open('kept');
    expect(await again.ask(id, 'car')).toEqual(before);
    // Only the vector of the query, in another process.
    expect([...new Set(server.requests.slice(requests).flatMap(({ input }) => input))]).toEqual(['car']);
    await post(`/${id}/facts`, { nodes: [{ name: 'Physician' }] });
    await eventually(async () => expect(names(await again.ask(id, 'doctor'))).toEqual(['Physician']));
    expect(server.requests.slice(requests).map(({ input }) => input)).toContainEqual(['Physician']);
  });

  it('starts again where the first vectors were of another length, in an answer that was none of the model', async () => {
    const id = await graphOf(VEHICLES);
    const { indexes, metrics, ask } = open('wrong first');
    server.answer = (input, response) =>
      sendVectors(
        response,
        input.map(() => [1, 2, 3]),
      );
    indexes.prepare(id);
    await eventually(async () => expect(await metrics.scrape()).toContain('parley_embedded_texts_total 5\n'));
    server.answer = null;
    await eventually(async () => {
      expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
    });
  });

  it('keeps its vectors when one answer has others', async () => {
    const id = await graphOf(VEHICLES);
    const { metrics, ask, whenEmbedded } = open('wrong once');
    await whenEmbedded(id, 5);
    const requests = server.requests.length;
    server.answer = (input, response) => {
      server.answer = null;
      sendVectors(
        response,
        input.map(() => [1, 2, 3]),
      );
    };
    await post(`/${id}/facts`, { nodes: [{ name: 'Physician' }] });
    // Brings the index up to date, and so asks for the vector of the new fact.
    await ask(id, '*', {}, 'newest');
    await eventually(async () => expect(await metrics.scrape()).toContain('parley_embedded_texts_total 6\n'));
    expect(names(await ask(id, 'doctor'))).toEqual(['Physician']);
    expect(server.requests.slice(requests).flatMap(({ input }) => input)).not.toContain('Banana');
    expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
  });

  it('starts again with a file of vectors that is damaged', async () => {
    const id = await graphOf(VEHICLES);
    const first = open('damaged');
    await first.whenEmbedded(id, 5);
    await first.indexes.close();
    const file = readdirSync(join(folders, 'damaged')).find((name) => name.endsWith('.vectors')) ?? '';
    writeFileSync(join(folders, 'damaged', file), 'no database');
    const again = open('damaged');
    await again.whenEmbedded(id, 5);
    expect(names(await again.ask(id, 'banana'))).toEqual(['Banana']);
  });

  it('asks for the dimensions that are configured', async () => {
    const id = await graphOf(VEHICLES);
    server.answer = (input, response) =>
      sendVectors(
        response,
        input.map((text) => embedding(text, 32)),
      );
    const { whenEmbedded } = open('dimensions', { dimensions: 32 });
    await whenEmbedded(id, 5);
    expect(server.requests.at(-1)).toMatchObject({ dimensions: 32 });
  });

  type Spoil = (vectors: unknown[], at: number, response: ServerResponse) => void;
  const fails =
    (status: number, body: string): Spoil =>
    (_vectors, _at, response) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  const becomes =
    (...items: unknown[]): Spoil =>
    (vectors, at) =>
      void vectors.splice(at, 1, ...items);
  it.each<[string, Spoil]>([
    ['413', fails(413, '')],
    ['500 for NaN', fails(500, '{"error":"failed to encode response: json: unsupported value: NaN"}')],
    ['400 for its length', fails(400, '{"error":{"message":"the input length exceeds the context length"}}')],
    ['429 for its tokens', fails(429, '{"error":{"message":"request too large"}}')],
    ['an item of null', becomes(null)],
    ['a vector of null', becomes({ embedding: null })],
    ['an empty vector', becomes({ embedding: [] })],
    ['a vector of zeros', becomes({ embedding: embedding('x').map(() => 0) })],
    ['a vector with null in place of NaN', becomes({ embedding: [...embedding('x').slice(1), null] })],
    ['no vector, and numbers of the others', becomes()],
  ])('leaves out a text alone that the endpoint answers with %s', async (_, spoil) => {
    const bad = Array.from({ length: 2 }, (_bad, at) => ({ name: `Poisonous ${at}` }));
    const id = await graphOf({ nodes: [...bad, ...VEHICLES.nodes] });
    server.answer = (input, response) => {
      const items = input.map((text, index): unknown => ({ index, embedding: embedding(text) }));
      for (const [at, text] of [...input.entries()].toReversed()) {
        if (text.startsWith('Poisonous')) spoil(items, at, response);
        if (response.writableEnded) return;
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: items }));
    };
    const { indexes, logged, ask, whenEmbedded } = open(`one bad ${_}`);
    await whenEmbedded(id, 5);
    expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
    expect(logged.filter((line) => line.includes('gives no vector for a text'))).toHaveLength(2);
    // It is marked, and not sent again.
    await indexes.close();
    const requests = server.requests.length;
    const again = open(`one bad ${_}`);
    await again.ask(id, 'vehicle');
    await post(`/${id}/facts`, { nodes: [{ name: 'Physician' }] });
    await eventually(async () => expect(names(await again.ask(id, 'doctor'))).toEqual(['Physician']));
    expect(server.requests.slice(requests).flatMap(({ input }) => input)).not.toContain('Poisonous 0');
  });

  it('embeds the beginning of a text that is too long for the model', async () => {
    const id = await graphOf({ nodes: [{ name: 'Vehicle', summary: 'of no kind '.repeat(150) }, { name: 'Banana' }] });
    server.answer = (input, response) => {
      if (input.some(({ length }) => length > 600)) return void response.writeHead(400).end('{"error":"too long"}');
      return sendVectors(
        response,
        input.map((text) => embedding(text.slice(0, 12))),
      );
    };
    const { ask, whenEmbedded } = open('long');
    await whenEmbedded(id, 2);
    expect(names(await ask(id, 'car'))).toEqual(['Vehicle']);
  });

  it('waits for a model that is loaded first, without asking again', async () => {
    const id = await graphOf(VEHICLES);
    const { ask, whenEmbedded } = open('loading');
    await whenEmbedded(id, 5);
    const requests = server.requests.length;
    const loaded = Promise.withResolvers<void>();
    server.answer = (input, response) =>
      void loaded.promise.then(() =>
        sendVectors(
          response,
          input.map((text) => embedding(text)),
        ),
      );
    await ask(id, 'vehicle', {}, 'words');
    await ask(id, 'vehicle', {}, 'words');
    loaded.resolve();
    await ask(id, 'vehicle');
    expect(server.requests.slice(requests).map(({ input }) => input)).toEqual([['vehicle']]);
  });

  it.each([
    ['dimensions', '{"object":"error","message":"dimensions is currently not supported","code":400}', 400],
    [
      'dimensions',
      '{"detail":[{"loc":["body"],"msg":"Model \\"m\\" does not support matryoshka representation"}]}',
      422,
    ],
    ['dimensions', '{"error":{"message":"litellm.UnsupportedParamsError: Setting dimensions is not supported"}}', 500],
    ['encoding_format', '{"error":{"message":"Unrecognized request argument supplied: encoding_format"}}', 400],
    ['encoding_format', '{"message":"base64 encoding is not currently supported"}', 400],
  ])('leaves out %s after %s', async (name, body, status) => {
    const id = await graphOf(VEHICLES);
    server.answer = (input, response) => {
      if (Object.hasOwn(server.requests.at(-1) ?? {}, name)) response.writeHead(status).end(body);
      else
        sendVectors(
          response,
          input.map((text) => embedding(text)),
        );
    };
    const { ask, whenEmbedded } = open(`without ${name} ${status} ${body.length}`, { dimensions: 32 });
    await whenEmbedded(id, 5);
    expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
    expect(server.requests.at(-1)).not.toHaveProperty(name);
  });

  it('takes vectors in base64, and such that are not numbered', async () => {
    const id = await graphOf(VEHICLES);
    server.answer = (input, response) => {
      const data = input.map((text) => ({
        embedding: Buffer.from(Float32Array.from(embedding(text)).buffer).toString('base64'),
      }));
      response.writeHead(200).end(JSON.stringify({ data }));
    };
    const { ask, whenEmbedded } = open('base64');
    await whenEmbedded(id, 5);
    expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
  });

  it('sends the prefixes that are configured, and keeps vectors of other prefixes apart', async () => {
    const id = await graphOf(VEHICLES);
    const first = open('prefixes');
    await first.whenEmbedded(id, 5);
    await first.indexes.close();
    const requests = server.requests.length;
    const { ask, whenEmbedded } = open('prefixes', { queryPrefix: 'query: ', passagePrefix: 'passage: ' });
    await whenEmbedded(id, 5);
    await ask(id, 'car');
    const inputs = new Set(server.requests.slice(requests).flatMap(({ input }) => input));
    expect(inputs).toContain('query: car');
    expect(inputs).toContain('passage: Banana');
    expect([...inputs].filter((text) => !/^(?:query|passage): /.test(text))).toEqual([]);
  });

  it('logs the sentence of the endpoint, without secrets', async () => {
    const id = await graphOf(VEHICLES);
    server.answer = (_, response) =>
      void response
        .writeHead(404)
        .end('{"error":{"message":"model \\"small\\" not found, try pulling it first; the key was of this test"}}');
    const { ask, logged } = open('sentence');
    await ask(id, 'car', {}, 'words');
    await eventually(async () => {
      const lines = logged.join('');
      expect(lines).toContain('not found, try pulling it first; the key was [redacted]');
      expect(lines).not.toContain('of this test');
    });
  });

  it('does not pause for a graph whose texts fail while the endpoint answers others', async () => {
    const [broken, sound] = await Promise.all([graphOf({ nodes: [{ name: 'Broken' }] }), graphOf(VEHICLES)]);
    const { indexes, metrics, ask, whenEmbedded } = open('others');
    await whenEmbedded(sound, 5);
    server.answer = (input, response) => {
      if (input.join() !== 'physician') response.writeHead(500).end('{"error":"out of memory"}');
      else sendVectors(response, [embedding('physician')]);
    };
    indexes.prepare(broken);
    await eventually(async () =>
      expect(await metrics.scrape()).toMatch(/requests_total\{purpose="facts",outcome="failed"\} [2-9]/),
    );
    await indexes.search(sound, { query: 'physician', limit: 10 });
    expect(server.requests.map(({ input }) => input)).toContainEqual(['physician']);
    expect(await ask(broken, 'broken', {}, 'words')).toMatchObject({ total_nodes: 1 });
  });
});

describe('a search is answered by words alone', () => {
  let id: string;
  beforeAll(async () => {
    id = await graphOf(VEHICLES);
    const { indexes, whenEmbedded } = open('failing');
    await whenEmbedded(id, 5);
    await indexes.close();
  });

  const vector = embedding('car');
  const reply = (body: string | Buffer) => (_: readonly string[], response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  const replyOf = (item: unknown) => (input: readonly string[], response: ServerResponse) =>
    sendVectors(
      response,
      input.map(() => item),
    );

  it.each<[string, NonNullable<EmbeddingServer['answer']>]>([
    ['answers 500', (_, response) => void response.writeHead(500).end('{}')],
    ['answers 429', (_, response) => void response.writeHead(429, { 'retry-after': '1000000' }).end()],
    ['answers 401', (_, response) => void response.writeHead(401).end()],
    ['refuses all texts', (_, response) => void response.writeHead(400).end()],
    ['redirects', (_, response) => void response.writeHead(307, { location: '/v1/embeddings' }).end()],
    ['closes the connection', (_, response) => void response.destroy()],
    ['sends 50 MB', reply(Buffer.alloc(50_000_000, ' '))],
    ['sends no JSON', reply('<html>')],
    ['sends null', reply('null')],
    ['sends no vectors', reply('{"data": []}')],
    [
      'sends too many vectors',
      (_, response) =>
        sendVectors(
          response,
          Array.from({ length: 100 }, () => vector),
        ),
    ],
    ['sends an empty vector', replyOf([])],
    ['sends 100,000 dimensions', replyOf(Array.from({ length: 100_000 }, () => 1))],
    ['sends null in place of NaN', replyOf([...vector.slice(1), Number.NaN])],
    ['sends texts', replyOf(vector.map(String))],
    ['sends too large numbers', replyOf(vector.map(() => 1e300))],
    ['sends zeros', replyOf(vector.map(() => 0))],
    ['sends no numbers', replyOf({ length: 3 })],
  ])('because there is no vector while the endpoint %s', async (_, answer) => {
    server.answer = answer;
    const outcomes: string[] = [];
    const { port } = new URL(server.baseUrl);
    const fetcher = createFetcher({
      metrics: createMetrics({ processMetrics: false }),
      allowHosts: [{ host: '127.0.0.1', port: Number(port) }],
    });
    const config = { ...CONFIG, baseUrl: server.baseUrl };
    const onRequest = (purpose: string, outcome: string): void => void outcomes.push(`${purpose} ${outcome}`);
    const endpoint = new EmbeddingEndpoint({ config, fetcher, onRequest });
    expect(await endpoint.ofQuery(id, 'car')).toBeNull();
    expect(outcomes).toEqual([expect.stringMatching(/^query (?:failed|refused)$/)]);
    // Another text may be accepted at once.
    expect(endpoint.pauseMs(id) > 0).toBe(outcomes[0] === 'query failed');
    expect(endpoint.pauseMs(id)).toBeLessThanOrEqual(60_000);
    await fetcher.close();
  });

  it.each<[string, NonNullable<EmbeddingServer['answer']>]>([
    ['answers 500', (_, response) => void response.writeHead(500).end('{}')],
    ['does not answer', () => undefined],
    ['sends other dimensions', replyOf([1, 2, 3])],
  ])('while the endpoint %s', async (_, answer) => {
    const { ask, metrics } = open('failing');
    await ask(id, 'car');
    server.answer = answer;
    expect(await ask(id, 'banana', {}, 'words')).toMatchObject({ nodes: [{ name: 'Banana' }] });
    await post(`/${id}/facts`, { nodes: [{ name: `Physician ${newId()}` }] });
    await ask(id, 'banana', {}, 'words');
    expect(await metrics.scrape()).toMatch(/parley_search_rankings_total\{ranking="words"\} [1-9]/);
  });

  it('without further requests until a pause has passed, and by vectors again when the endpoint is back', async () => {
    const { ask, metrics } = open('back');
    server.answer = (_, response) => void response.writeHead(500).end();
    await ask(id, 'car', {}, 'words');
    await eventually(async () =>
      expect(await metrics.scrape()).toMatch(/embedding_requests_total\{.*outcome="failed"/),
    );
    const requests = server.requests.length;
    for (let again = 0; again < 20; again++) await ask(id, `car ${again}`, {}, 'words');
    expect(server.requests.length - requests).toBeLessThan(10);
    server.answer = null;
    await ask(id, 'car');
  });
});

it('is used by `parley search` as well, with the vectors that are in the data folder', async () => {
  const { eventStore, redis } = api.stores;
  const folder = await openDataFolder(join(folders, 'data'));
  await folder.publish({ eventstoreUrl: eventStore.url, redisUrl: redis.url });
  try {
    const id = await graphOf(VEHICLES);
    const { indexes, whenEmbedded } = open('data/search');
    await whenEmbedded(id, 5);
    await indexes.close();
    const requests = server.requests.length;
    const environment = { DATA_DIR: folder.path, EMBEDDING_BASE_URL: server.baseUrl, EMBEDDING_MODEL: 'small' };
    await eventually(async () => {
      const found = await runParley(environment, 'search', id, 'car', '--json');
      expect([found.exitCode, found.stderr]).toEqual([0, '']);
      // On a busy machine, the vector of the query may come too late.
      expect(JSON.parse(found.stdout)).toMatchObject({ ranking: 'words_and_vectors', total_nodes: 2, total_edges: 1 });
    });
    expect(new Set(server.requests.slice(requests).flatMap(({ input }) => input))).toEqual(new Set(['car']));
  } finally {
    await folder.release();
  }
});

it('without an endpoint, nothing is requested and no file of vectors exists', async () => {
  const requests = server.requests.length;
  const id = await graphOf(VEHICLES);
  const { store, log } = api.stores.platform;
  const metrics = createMetrics({ processMetrics: false });
  const indexes = new GraphSearch({ store, log, metrics, folder: join(folders, 'none'), threads: 1 });
  opened.push(indexes);
  await eventually(async () =>
    expect(await indexes.search(id, { query: 'car', limit: 10 })).toMatchObject({ ranking: 'words', total_nodes: 1 }),
  );
  await indexes.close();
  expect(readdirSync(join(folders, 'none'))).toEqual([`${id}.sqlite`]);
  expect(server.requests).toHaveLength(requests);
  expect(await metrics.scrape()).not.toContain('embedding');
});
