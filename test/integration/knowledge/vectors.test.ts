/** Search by meaning, with an endpoint for embeddings on loopback and real stores. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { GraphSearch } from '#libs/features/knowledge/search/graph-search.ts';
import { openDataFolder } from '#infra/data-folder/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { runParley } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { embedding, sendVectors } from '#test/support/knowledge/embedding-server.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { useVectorSearch, VEHICLES } from './vector-search.ts';

const stage = useVectorSearch();
const { graphOf, open, opened, post } = stage;

const names = (found: { readonly nodes: readonly { readonly name: string }[] } | null) =>
  found?.nodes.map(({ name }) => name);

describe('with an endpoint for embeddings, a search', () => {
  it('finds what words alone do not find, and says so', async () => {
    const id = await graphOf(VEHICLES);
    const { ask, whenEmbedded } = open('meaning');
    await whenEmbedded(id, 5);
    expect(
      (await stage.api.call({ method: 'GET', url: `/api/v1/knowledge/${id}/search?query=car`, key: stage.api.rootKey }))
        .json,
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
    expect(stage.server.headers.at(-1)).toMatchObject({ authorization: 'Bearer of this test' });
    expect(stage.server.requests.at(-1)).toMatchObject({ model: 'small', input: [expect.any(String)] });
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
    rmSync(join(stage.folders, 'kept', `${id}.sqlite`));
    const requests = stage.server.requests.length;
    const again = open('kept');
    expect(await again.ask(id, 'car')).toEqual(before);
    // Only the vector of the query, in another process.
    expect([...new Set(stage.server.requests.slice(requests).flatMap(({ input }) => input))]).toEqual(['car']);
    await post(`/${id}/facts`, { nodes: [{ name: 'Physician' }] });
    await eventually(async () => expect(names(await again.ask(id, 'doctor'))).toEqual(['Physician']));
    expect(stage.server.requests.slice(requests).map(({ input }) => input)).toContainEqual(['Physician']);
  });

  it('starts again where the first vectors were of another length, in an answer that was none of the model', async () => {
    const id = await graphOf(VEHICLES);
    const { indexes, metrics, ask } = open('wrong first');
    stage.server.answer = (input, response) =>
      sendVectors(
        response,
        input.map(() => [1, 2, 3]),
      );
    indexes.prepare(id);
    await eventually(async () => expect(await metrics.scrape()).toContain('parley_embedded_texts_total 5\n'));
    stage.server.answer = null;
    await eventually(async () => {
      expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
    });
  });

  it('keeps its vectors when one answer has others', async () => {
    const id = await graphOf(VEHICLES);
    const { metrics, ask, whenEmbedded } = open('wrong once');
    await whenEmbedded(id, 5);
    const requests = stage.server.requests.length;
    stage.server.answer = (input, response) => {
      stage.server.answer = null;
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
    expect(stage.server.requests.slice(requests).flatMap(({ input }) => input)).not.toContain('Banana');
    expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
  });

  it('starts again with a file of vectors that is damaged', async () => {
    const id = await graphOf(VEHICLES);
    const first = open('damaged');
    await first.whenEmbedded(id, 5);
    await first.indexes.close();
    const file = readdirSync(join(stage.folders, 'damaged')).find((name) => name.endsWith('.vectors')) ?? '';
    writeFileSync(join(stage.folders, 'damaged', file), 'no database');
    const again = open('damaged');
    await again.whenEmbedded(id, 5);
    expect(names(await again.ask(id, 'banana'))).toEqual(['Banana']);
  });

  it('asks for the dimensions that are configured', async () => {
    const id = await graphOf(VEHICLES);
    stage.server.answer = (input, response) =>
      sendVectors(
        response,
        input.map((text) => embedding(text, 32)),
      );
    const { whenEmbedded } = open('dimensions', { dimensions: 32 });
    await whenEmbedded(id, 5);
    expect(stage.server.requests.at(-1)).toMatchObject({ dimensions: 32 });
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
  /** A refusal of a request, and a vector that is none: marks of the others are in the same files. */
  const OPENED_AGAIN = new Set(['413', 'an item of null']);
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
    stage.server.answer = (input, response) => {
      const items = input.map((text, index): unknown => ({ index, embedding: embedding(text) }));
      for (const [at, text] of [...input.entries()].toReversed()) {
        if (text.startsWith('Poisonous')) spoil(items, at, response);
        if (response.writableEnded) return;
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: items }));
    };
    const first = open(`one bad ${_}`);
    await first.whenEmbedded(id, 5);
    expect(names(await first.ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
    expect(first.logged.filter((line) => line.includes('gives no vector for a text'))).toHaveLength(2);
    // It is marked, and not sent again.
    const isOpenedAgain = IN_CAMPAIGN || OPENED_AGAIN.has(_);
    if (isOpenedAgain) await first.indexes.close();
    const requests = stage.server.requests.length;
    const again = isOpenedAgain ? open(`one bad ${_}`) : first;
    await again.ask(id, 'vehicle');
    await post(`/${id}/facts`, { nodes: [{ name: 'Physician' }] });
    await eventually(async () => expect(names(await again.ask(id, 'doctor'))).toEqual(['Physician']));
    expect(stage.server.requests.slice(requests).flatMap(({ input }) => input)).not.toContain('Poisonous 0');
  });

  it('embeds the beginning of a text that is too long for the model', async () => {
    const id = await graphOf({ nodes: [{ name: 'Vehicle', summary: 'of no kind '.repeat(150) }, { name: 'Banana' }] });
    stage.server.answer = (input, response) => {
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
    const requests = stage.server.requests.length;
    const loaded = Promise.withResolvers<void>();
    stage.server.answer = (input, response) =>
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
    expect(stage.server.requests.slice(requests).map(({ input }) => input)).toEqual([['vehicle']]);
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
    stage.server.answer = (input, response) => {
      if (Object.hasOwn(stage.server.requests.at(-1) ?? {}, name)) response.writeHead(status).end(body);
      else
        sendVectors(
          response,
          input.map((text) => embedding(text)),
        );
    };
    const { ask, whenEmbedded } = open(`without ${name} ${status} ${body.length}`, { dimensions: 32 });
    await whenEmbedded(id, 5);
    expect(names(await ask(id, 'car'))?.toSorted()).toEqual(['Automobile', 'Cardinal']);
    expect(stage.server.requests.at(-1)).not.toHaveProperty(name);
  });

  it('takes vectors in base64, and such that are not numbered', async () => {
    const id = await graphOf(VEHICLES);
    stage.server.answer = (input, response) => {
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
    const requests = stage.server.requests.length;
    const { ask, whenEmbedded } = open('prefixes', { queryPrefix: 'query: ', passagePrefix: 'passage: ' });
    await whenEmbedded(id, 5);
    await ask(id, 'car');
    const inputs = new Set(stage.server.requests.slice(requests).flatMap(({ input }) => input));
    expect(inputs).toContain('query: car');
    expect(inputs).toContain('passage: Banana');
    expect([...inputs].filter((text) => !/^(?:query|passage): /.test(text))).toEqual([]);
  });

  it('logs the sentence of the endpoint, without secrets', async () => {
    const id = await graphOf(VEHICLES);
    stage.server.answer = (_, response) =>
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
    stage.server.answer = (input, response) => {
      if (input.join() !== 'physician') response.writeHead(500).end('{"error":"out of memory"}');
      else sendVectors(response, [embedding('physician')]);
    };
    indexes.prepare(broken);
    await eventually(async () =>
      expect(await metrics.scrape()).toMatch(/requests_total\{purpose="facts",outcome="failed"\} [2-9]/),
    );
    await indexes.search(sound, { query: 'physician', limit: 10 });
    expect(stage.server.requests.map(({ input }) => input)).toContainEqual(['physician']);
    expect(await ask(broken, 'broken', {}, 'words')).toMatchObject({ total_nodes: 1 });
  });
});

it('is used by `parley search` as well, with the vectors that are in the data folder', async () => {
  const { eventStore, redis } = stage.api.stores;
  const folder = await openDataFolder(join(stage.folders, 'data'));
  await folder.publish({ eventstoreUrl: eventStore.url, redisUrl: redis.url });
  try {
    const id = await graphOf(VEHICLES);
    const { indexes, whenEmbedded } = open('data/search');
    await whenEmbedded(id, 5);
    await indexes.close();
    const requests = stage.server.requests.length;
    const environment = { DATA_DIR: folder.path, EMBEDDING_BASE_URL: stage.server.baseUrl, EMBEDDING_MODEL: 'small' };
    await eventually(async () => {
      const found = await runParley(environment, 'search', id, 'car', '--json');
      expect([found.exitCode, found.stderr]).toEqual([0, '']);
      // On a busy machine, the vector of the query may come too late.
      expect(JSON.parse(found.stdout)).toMatchObject({ ranking: 'words_and_vectors', total_nodes: 2, total_edges: 1 });
    });
    expect(new Set(stage.server.requests.slice(requests).flatMap(({ input }) => input))).toEqual(new Set(['car']));
  } finally {
    await folder.release();
  }
});

it('without an endpoint, nothing is requested and no file of vectors exists', async () => {
  const requests = stage.server.requests.length;
  const id = await graphOf(VEHICLES);
  const { store, log } = stage.api.stores.platform;
  const metrics = createMetrics({ processMetrics: false });
  const indexes = new GraphSearch({ store, log, metrics, folder: join(stage.folders, 'none'), threads: 1 });
  opened.push(indexes);
  await eventually(async () =>
    expect(await indexes.search(id, { query: 'car', limit: 10 })).toMatchObject({ ranking: 'words', total_nodes: 1 }),
  );
  await indexes.close();
  expect(readdirSync(join(stage.folders, 'none'))).toEqual([`${id}.sqlite`]);
  expect(stage.server.requests).toHaveLength(requests);
  expect(await metrics.scrape()).not.toContain('embedding');
});
