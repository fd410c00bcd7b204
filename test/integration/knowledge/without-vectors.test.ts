/** Search by words, while there are no vectors of the endpoint for embeddings. */
import { type ServerResponse } from 'node:http';
import { describe, expect, it, beforeAll } from 'vitest';
import { EmbeddingEndpoint } from '#libs/features/knowledge/search/embedding-endpoint.ts';
import { newId } from '#libs/kernel/ids.ts';
import { createFetcher } from '#libs/platform/fetch/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { embedding, type EmbeddingServer, sendVectors } from '#test/support/knowledge/embedding-server.ts';
import { CONFIG, useVectorSearch, VEHICLES } from './vector-search.ts';

const stage = useVectorSearch();
const { graphOf, open, post } = stage;

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
    stage.server.answer = answer;
    const outcomes: string[] = [];
    const { port } = new URL(stage.server.baseUrl);
    const fetcher = createFetcher({
      metrics: createMetrics({ processMetrics: false }),
      allowHosts: [{ host: '127.0.0.1', port: Number(port) }],
    });
    const config = { ...CONFIG, baseUrl: stage.server.baseUrl };
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
    stage.server.answer = answer;
    expect(await ask(id, 'banana', {}, 'words')).toMatchObject({ nodes: [{ name: 'Banana' }] });
    await post(`/${id}/facts`, { nodes: [{ name: `Physician ${newId()}` }] });
    await ask(id, 'banana', {}, 'words');
    expect(await metrics.scrape()).toMatch(/parley_search_rankings_total\{ranking="words"\} [1-9]/);
  });

  it('without further requests until a pause has passed, and by vectors again when the endpoint is back', async () => {
    const { ask, metrics } = open('back');
    stage.server.answer = (_, response) => void response.writeHead(500).end();
    await ask(id, 'car', {}, 'words');
    await eventually(async () =>
      expect(await metrics.scrape()).toMatch(/embedding_requests_total\{.*outcome="failed"/),
    );
    const requests = stage.server.requests.length;
    for (let again = 0; again < 20; again++) await ask(id, `car ${again}`, {}, 'words');
    expect(stage.server.requests.length - requests).toBeLessThan(10);
    stage.server.answer = null;
    await ask(id, 'car');
  });
});
