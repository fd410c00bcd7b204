import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Fault } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { composeFeatures } from '#services/features.ts';
import { factsOfDocument, nodeToLearn } from '#test/support/knowledge/facts.ts';
import { keysIn } from '#test/support/redis-commands.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

const GRAPHS = '/api/v1/knowledge';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object, headers = {}): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, headers, ...(body !== undefined && { body }) });
}

async function createGraph(): Promise<string> {
  return (await call('POST', GRAPHS, { name: 'Scientists' })).json.id;
}

const post = (id: string, body: object, headers = {}) => call('POST', `${GRAPHS}/${id}/facts`, body, headers);

/** Answer of a request that is accepted. */
async function accepted(id: string, body: object): Promise<Record<'nodes' | 'edges', Record<string, unknown>[]>> {
  const answer = await post(id, body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.json;
}

/** Errors of a request that is refused. */
async function refusedAt(id: string, body: object): Promise<unknown[]> {
  const answer = await post(id, body);
  expect(answer.status).toBe(422);
  return answer.json.detail.map(({ loc, type }: { loc: unknown; type: string }) => [type, loc]);
}

const operator = (): CommandContext => ({
  commandId: newId(),
  organizationId: api.organizationId,
  actor: { type: 'system', id: 'test' },
  at: new Date().toISOString(),
});

const counts = async (id: string) => {
  const { node_count, edge_count, document_count } = (await call('GET', `${GRAPHS}/${id}`)).json;
  return { node_count, edge_count, document_count };
};

const people = {
  nodes: [{ name: 'Ada Lovelace', summary: 'Mathematician', labels: ['Person'] }],
  edges: [
    {
      source: 'Ada Lovelace',
      target: 'Charles Babbage',
      fact: 'Ada Lovelace met Charles Babbage',
      name: 'met',
      valid_at: '1833-06-05T12:00:00+02:00',
    },
  ],
};

describe('facts of a caller', () => {
  it('are answered as search answers them, with a node for each new name', async () => {
    const id = await createGraph();
    const { nodes, edges } = await accepted(id, people);
    const [ada, charles] = nodes;
    expect(nodes).toMatchObject([
      { name: 'Ada Lovelace', summary: 'Mathematician', labels: ['Person'], sources: [] },
      { name: 'Charles Babbage', summary: null, labels: [], sources: [] },
    ]);
    expect(edges).toMatchObject([
      {
        fact: 'Ada Lovelace met Charles Babbage',
        source_node_uuid: ada?.['uuid'],
        target_node_uuid: charles?.['uuid'],
        name: 'met',
        valid_at: '1833-06-05T10:00:00.000Z',
        invalid_at: null,
        sources: [],
      },
    ]);
    expect(await counts(id)).toEqual({ node_count: 2, edge_count: 1, document_count: 0 });
  });

  it('are the same facts when they are posted again', async () => {
    const id = await createGraph();
    const first = await accepted(id, people);
    expect(await accepted(id, people)).toEqual(first);
    const [edge] = people.edges;
    const again = { edges: [{ ...edge, source: ' ADA  lovelace', target: 'CHARLES BABBAGE' }] };
    expect((await accepted(id, again)).edges).toEqual(first.edges);
    // A node that is named without details keeps those that it has.
    expect((await accepted(id, { nodes: [{ name: 'ada lovelace' }] })).nodes).toMatchObject([
      { uuid: first.nodes[0]?.['uuid'], summary: 'Mathematician', labels: ['Person'] },
    ]);
    expect(await counts(id)).toEqual({ node_count: 2, edge_count: 1, document_count: 0 });
  });

  it('end when they are written again with a time, or when a single-valued relation gets another target', async () => {
    const id = await createGraph();
    const manages = (target: string, more: object) => ({
      source: 'Ada',
      target,
      name: 'manages',
      fact: `Ada manages ${target}`,
      ...more,
    });
    const bremen = manages('Bremen', { valid_at: '2024-03-01T00:00:00Z', single_valued: true });
    const kiel = manages('Kiel', { valid_at: '2026-04-01T00:00:00Z', single_valued: true });
    await accepted(id, { edges: [bremen] });
    await accepted(id, { edges: [kiel] });
    const ended = { ...kiel, invalid_at: '2026-09-30T00:00:00Z' };
    expect((await accepted(id, { edges: [bremen, ended] })).edges).toMatchObject([
      { fact: 'Ada manages Bremen', invalid_at: '2026-04-01T00:00:00.000Z' },
      { fact: 'Ada manages Kiel', invalid_at: '2026-09-30T00:00:00.000Z' },
    ]);
    expect(await counts(id)).toMatchObject({ edge_count: 2 });
    const at = async (time: string) => {
      const found = await call('GET', `${GRAPHS}/${id}/search?valid_at=${time}`);
      return found.json.edges.map(({ fact }: { fact: string }) => fact);
    };
    expect(await at('2025-01-01T00:00:00Z')).toEqual(['Ada manages Bremen']);
    expect(await at('2026-05-01T00:00:00Z')).toEqual(['Ada manages Kiel']);
    expect(await at('2026-11-01T00:00:00Z')).toEqual([]);
  });

  it('refer to nodes of the graph by uuid, and to no others', async () => {
    const id = await createGraph();
    const { nodes } = await accepted(id, people);
    const source = String(nodes[0]?.['uuid']).toUpperCase();
    const { edges } = await accepted(id, { edges: [{ source, target: 'Bernoulli', fact: 'wrote about' }] });
    expect(edges).toMatchObject([{ source_node_uuid: nodes[0]?.['uuid'] }]);

    const unknown = { edges: [people.edges[0], { source: 'Ada Lovelace', target: newId(), fact: 'knows' }] };
    expect(await refusedAt(id, unknown)).toEqual([['value_error', ['body', 'edges', 1, 'target']]]);
    const other = await createGraph();
    const elsewhere = { edges: [{ source, target: 'Bernoulli', fact: 'wrote about' }] };
    expect(await refusedAt(other, elsewhere)).toEqual([['value_error', ['body', 'edges', 0, 'source']]]);
    expect(await counts(other)).toEqual({ node_count: 0, edge_count: 0, document_count: 0 });
  });

  it('are refused with the place of each problem', async () => {
    const id = await createGraph();
    const edge = { source: 'a', target: 'b', fact: 'c' };
    const problems: [object, string, (string | number)[]][] = [
      [{ nodes: {} }, 'list_type', ['nodes']],
      [{ nodes: [{}] }, 'missing', ['nodes', 0, 'name']],
      [{ nodes: [{ name: '  ' }] }, 'string_pattern_mismatch', ['nodes', 0, 'name']],
      [{ nodes: [{ name: 'x'.repeat(257) }] }, 'string_too_long', ['nodes', 0, 'name']],
      [{ nodes: [{ name: '\ud800' }] }, 'string_unicode', ['nodes', 0, 'name']],
      [{ nodes: [{ name: 'x', labels: 'Person' }] }, 'list_type', ['nodes', 0, 'labels']],
      [{ nodes: Array.from({ length: 501 }, () => ({ name: 'x' })) }, 'too_long', ['nodes']],
      [{ edges: Array.from({ length: 501 }, () => edge) }, 'too_long', ['edges']],
      [{ edges: [{ source: 'a', fact: 'b' }] }, 'missing', ['edges', 0, 'target']],
      [{ edges: [{ ...edge, fact: 'x'.repeat(4_097) }] }, 'string_too_long', ['edges', 0, 'fact']],
      [{ edges: [{ ...edge, valid_at: '2020-01-01' }] }, 'timezone_aware', ['edges', 0, 'valid_at']],
      [
        { edges: [{ ...edge, valid_at: '9999-12-31T23:59:59-01:00' }] },
        'datetime_from_date_parsing',
        ['edges', 0, 'valid_at'],
      ],
      [
        { edges: [edge, { ...edge, valid_at: '2026-01-02T00:00:00Z', invalid_at: '2026-01-02T00:00:00+01:00' }] },
        'value_error',
        ['edges', 1, 'invalid_at'],
      ],
      [{ edges: [{ ...edge, invalid_at: 'soon' }] }, 'datetime_from_date_parsing', ['edges', 0, 'invalid_at']],
      [{ edges: [{ ...edge, single_valued: 'yes' }] }, 'bool_type', ['edges', 0, 'single_valued']],
    ];
    for (const [body, type, loc] of problems) {
      expect(await refusedAt(id, body)).toEqual([[type, ['body', ...loc]]]);
    }
    expect(await counts(id)).toEqual({ node_count: 0, edge_count: 0, document_count: 0 });
  });

  it('of one request are added together, however large they are', async () => {
    const id = await createGraph();
    const name = (index: number) => `${'é'.repeat(40)} ${index}`;
    const edges = Array.from({ length: 500 }, (_, index) => ({
      source: name(2 * index),
      target: name(2 * index + 1),
      fact: `${'ü'.repeat(90)} ${index}`,
      valid_at: '2026-01-01T00:00:00Z',
    }));
    const added = await accepted(id, { edges });
    expect(added.edges.map((edge) => edge['fact'])).toEqual(edges.map(({ fact }) => fact));
    expect(added.nodes).toHaveLength(1_000);
    const log = await Array.fromAsync(api.stores.platform.store.readStream(`graph-${id}`));
    expect(new Set(log.map(({ metadata }) => Reflect.get(Object(metadata), 'commandId'))).size).toBe(2);
  });

  it('are learnt once for each idempotency key', async () => {
    const id = await createGraph();
    const key = { 'idempotency-key': newId() };
    const [first, again] = [await post(id, people, key), await post(id, people, key)];
    expect(again.bytes).toBe(first.bytes);
    expect(again.headers['idempotency-replayed']).toBe('true');
    // As after a lost answer: Redis has no record of it, and the log has the facts.
    const { redis } = api.stores.platform;
    await redis.remove(await keysIn(redis, 'parley:idempotency:*'));
    expect((await post(id, people, key)).bytes).toBe(first.bytes);
    expect(await Array.fromAsync(api.stores.platform.store.readStream(`graph-${id}`))).toHaveLength(2);
  });
});

describe('facts of documents', () => {
  it('are withdrawn with the content that they come from, except where other sources state them', async () => {
    const id = await createGraph();
    const { knowledge } = api.features;
    await knowledge.learn(operator(), id, [
      factsOfDocument('one', 0, ['Ada', 'Bob']),
      factsOfDocument('two', 0, ['Ada']),
    ]);
    expect(await counts(id)).toEqual({ node_count: 2, edge_count: 1, document_count: 2 });
    await knowledge.learn(operator(), id, [factsOfDocument('one', 4, ['Carol'])]);
    await knowledge.withdraw(operator(), id, 'one', 4);
    expect(await counts(id)).toEqual({ node_count: 2, edge_count: 0, document_count: 2 });
    await knowledge.withdraw(operator(), id, 'one', 9);
    expect(await counts(id)).toEqual({ node_count: 1, edge_count: 0, document_count: 1 });
  });

  it('of content that is withdrawn are not shown when they are learnt late', async () => {
    const id = await createGraph();
    const { knowledge } = api.features;
    await knowledge.withdraw(operator(), id, 'one', 4);
    await knowledge.learn(operator(), id, [factsOfDocument('one', 0, ['Ada', 'Bob'])]);
    expect(await counts(id)).toEqual({ node_count: 0, edge_count: 0, document_count: 0 });
  });

  it('may be larger than an append', async () => {
    const id = await createGraph();
    const names = Array.from({ length: 3_000 }, (_, index) => `name ${index} ${'x'.repeat(500)}`);
    const result = await api.features.knowledge.learn(operator(), id, [factsOfDocument('large', 0, names)]);
    expect(result.ok).toBe(true);
    expect(await counts(id)).toEqual({ node_count: 3_000, edge_count: 2_999, document_count: 1 });
  });

  it('are all kept when many processes learn them at the same time', async () => {
    const id = await createGraph();
    const { platform } = api.stores;
    const processes = [api.features, composeFeatures(platform), composeFeatures(platform)];
    const learned = processes.flatMap(({ knowledge }, process) =>
      Array.from({ length: 20 }, async (_, index) => {
        const node = nodeToLearn(`of ${process}, ${index}`);
        const facts = { ...factsOfDocument(`document ${process} ${index}`, 0, ['shared']) };
        // A reactor repeats a step that met too many conflicts.
        for (;;) {
          try {
            return await knowledge.learn(operator(), id, [{ ...facts, nodes: [...facts.nodes, node] }]);
          } catch (error) {
            if (!(error instanceof Fault) || error.code !== 'conflict') throw error;
          }
        }
      }),
    );
    expect((await Promise.all(learned)).every(({ ok }) => ok)).toBe(true);
    expect(await counts(id)).toEqual({ node_count: 61, edge_count: 0, document_count: 60 });
    const { revision } = (await Array.fromAsync(platform.store.readStream(`graph-${id}`))).at(-1) ?? {};
    expect(revision).toBe(60);
  });
});

describe('an edge', () => {
  const lives = { source: 'Ada', target: 'London', fact: 'Ada lives in London', valid_at: '2020-01-01T00:00:00Z' };
  const edgesOf = async (id: string, query = '') =>
    (await call('GET', `${GRAPHS}/${id}/search?query=london${query}`)).json.edges;

  it('is ended at a time, which can be corrected, and stays in the past', async () => {
    const id = await createGraph();
    const { uuid } = (await accepted(id, { edges: [lives] })).edges[0] ?? {};
    const end = (body: object, edge = uuid) => call('POST', `${GRAPHS}/${id}/edges/${edge}/end`, body);
    const ended = await end({ invalid_at: '2022-01-01T00:00:00Z' });
    expect(ended).toMatchObject({ status: 200, json: { uuid, invalid_at: '2022-01-01T00:00:00.000Z' } });
    expect(ended.headers['etag']).toBe('"2"');
    expect(await edgesOf(id)).toEqual([]);
    expect(await edgesOf(id, '&valid_at=2021-01-01T00:00:00Z')).toEqual([ended.json]);
    expect(await edgesOf(id, '&as_of=2')).toMatchObject([{ uuid, invalid_at: null }]);
    expect(await counts(id)).toEqual({ node_count: 2, edge_count: 1, document_count: 0 });

    const corrected = await end({});
    expect(Date.parse(corrected.json.invalid_at)).toBeGreaterThan(Date.parse('2026-01-01'));
    expect(await edgesOf(id, '&valid_at=2023-01-01T00:00:00Z')).toEqual([corrected.json]);
  });

  it('is not ended before it begins, and one that the graph does not have is a 404', async () => {
    const id = await createGraph();
    const { nodes, edges } = await accepted(id, { edges: [lives] });
    const end = (graph: string, edge: unknown, body: object = {}) =>
      call('POST', `${GRAPHS}/${graph}/edges/${String(edge)}/end`, body);
    const early = await end(id, edges[0]?.uuid, { invalid_at: '2019-12-31T00:00:00Z' });
    expect(early).toMatchObject({ status: 422, json: { detail: [{ loc: ['body', 'invalid_at'] }] } });
    const missing = await Promise.all([
      end(id, newId()),
      end(id, nodes[0]?.uuid),
      end(newId(), edges[0]?.uuid),
      end(await createGraph(), edges[0]?.uuid),
    ]);
    for (const { status, bytes } of missing) expect([status, bytes]).toEqual([404, missing[0]?.bytes]);
    expect((await edgesOf(id))[0]).toMatchObject({ invalid_at: null });
  });
});
