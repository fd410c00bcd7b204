/** Reports on all stores: their life, what they say, and workers that die. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Knowledge } from '#libs/features/knowledge/index.ts';
import { reportResearch } from '#libs/features/reports/report.reactor.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { runParley } from '#test/support/command-line.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';

const REPORTS = '/api/v1/reports';
const HANDBOOK = `# Warehouse handbook

## Opening hours

The warehouse in Bremen opens at nine and closes at five. Deliveries arrive at the north gate.

## Safety

Forklifts in the warehouse must not carry passengers. Helmets are worn in every aisle.`;

// eslint-disable-next-line typescript/no-explicit-any -- tests assert the shape that they expect
type Json = any;

let api: DocumentsApi;
let graph: string;

beforeAll(async () => {
  api = await DocumentsApi.start();
  graph = await api.newGraph();
  const text = { text: HANDBOOK, content_type: 'text/markdown' };
  const id = await api.newDocument({ knowledge_graph: graph, name: 'Warehouse handbook', ...text });
  expect(await api.settled(id)).toMatchObject({ status: 'Ready' });
  const edges = [
    { source: 'Ada', target: 'Warehouse Bremen', name: 'manages', fact: 'Ada manages the warehouse in Bremen' },
    { source: 'Ada', target: 'Grace', name: 'reports to', fact: 'Ada reports to Grace' },
  ];
  expect((await api.call('POST', `/api/v1/knowledge/${graph}/facts`, { edges })).status).toBe(200);
});
afterAll(async () => {
  await api?.stop();
});

async function requested(body: object, key?: string): Promise<Json> {
  const reply = await api.call('POST', REPORTS, body, {}, key);
  expect(reply).toMatchObject({ status: 200, json: { status: 'Queued', results: '' } });
  return reply.json;
}

const read = async (id: string): Promise<Json> => (await api.call('GET', `${REPORTS}/${id}`)).json;

function ended(id: string): Promise<Json> {
  return eventually(async () => {
    const report = await read(id);
    expect(report.status).toMatch(/^(Ready|Cancelled|Failed)/);
    return report;
  });
}

async function written(body: object): Promise<Json> {
  return ended((await requested({ knowledge_graph: graph, ...body })).id);
}

const types = async (id: string): Promise<string[]> =>
  (await api.types(`report-${id}`)).map((type) => type.replace(/\.v\d+$/, ''));

/** A worker that handles one event of a report, by its number; calls of `knowledge` replace those of the feature. */
async function worker(id: string, revision: number, knowledge: Partial<Knowledge> = {}) {
  const { platform } = api.api.stores;
  let event: StoredEvent | undefined;
  for await (const stored of platform.store.readStream(`report-${id}`))
    if (stored.revision === revision) event = stored;
  if (event === undefined) throw new Error('there is no such event');
  const step = new Step(reportResearch({ ...api.api.features.knowledge, ...knowledge }, null), platform, event);
  return (signal = new AbortController().signal, failures = 0) => step.attempt({ failures, lastError: null, signal });
}

/** Runs without the worker of the test. */
async function withoutWorker(run: () => Promise<void>): Promise<void> {
  await api.stopWorker();
  try {
    await run();
  } finally {
    await api.startWorker();
  }
}

describe('a report', () => {
  it('answers with cited sentences, facts along edges, and what was not found', async () => {
    const { results, ...report } = await written({
      query: 'When does the warehouse in Bremen open, does Ada have a zeppelin?',
    });
    expect(report).toMatchObject({ status: 'Ready', knowledge_graph: graph });
    expect(Object.keys({ results, ...report }).toSorted()).toEqual([
      'cost',
      'created',
      'id',
      'knowledge_graph',
      'modified',
      'progress',
      'query',
      'results',
      'status',
      'usage',
      'written_by',
    ]);
    const written_by = { method: 'extractive', model: null, reason: null };
    expect(report).toMatchObject({ written_by, usage: null, cost: null });
    expect(results).toMatch(/^\*Extractive report: .* No language model/m);
    expect(results).toMatch(
      /## Answer\n\n- \*\*Opening hours\*\*: The warehouse in Bremen opens at nine and closes at five\. \[1\]\n/,
    );
    expect(results).toContain('Ada manages the warehouse in Bremen.');
    // From Ada, along an edge that no word of the query leads to.
    expect(results).toContain('Ada reports to Grace.');
    expect(results).toContain('Nothing was found for: zeppelin.');
    expect(results).toContain('1. **Warehouse handbook**, Opening hours: The warehouse in Bremen opens');
    expect(results).toMatch(/\d\. A caller's statement in the graph "Library"/);
  });

  it('is the same text for the same question about the same facts', async () => {
    const [one, other] = [await written({ query: 'warehouse safety' }), await written({ query: 'warehouse safety' })];
    expect(one.id).not.toBe(other.id);
    expect(one.results).toContain('Forklifts in the warehouse must not carry passengers. [');
    expect(other.results).toBe(one.results);
  });

  it('has the query of the contract by default, and says that nothing was found', async () => {
    const report = await written({});
    expect(report).toMatchObject({ status: 'Ready', query: "What's going on in Grand Rapids, Michigan?" });
    expect(report.results).toContain('The knowledge graph holds nothing on this question.');
    expect(report.results).toContain('Nothing was found for: grand, rapids, michigan.');
    expect((await written({ query: '???' })).results).toContain('It has no words to search for.');
  });

  it('searches the newest graphs of its own organization if it names none', async () => {
    const { id } = await requested({ query: 'warehouse Bremen' });
    expect((await ended(id)).results).toContain('The warehouse in Bremen opens at nine');
    const foreign = await requested({ query: 'warehouse Bremen' }, api.foreignKey);
    const results = await eventually(async () => {
      const { json } = await api.call('GET', `${REPORTS}/${foreign.id}`, undefined, {}, api.foreignKey);
      expect(json.status).toBe('Ready');
      return json.results;
    });
    expect(results).toContain('There is no knowledge graph to search.');
  });

  it('is listed by status and graph, newest first', async () => {
    const { id } = await written({ query: 'helmets' });
    const list = async (query: string): Promise<Json> => (await api.call('GET', `${REPORTS}?${query}`)).json;
    expect((await list(`size=1&status=ready&knowledge_graph=${graph}`)).items).toMatchObject([{ id }]);
    expect((await list(`status=Failed&knowledge_graph=${graph}`)).items).toEqual([]);
    expect((await list(`size=1&page=2&knowledge_graph=${graph}`)).meta).toMatchObject({ page: 2, has_previous: true });
  });

  it.each([
    ['an empty query', { query: '' }],
    ['a query of spaces', { query: '  ' }],
    ['a query that is no text', { query: 7 }],
    ['a query that is too long', { query: 'x'.repeat(4_001) }],
    ['a graph that does not exist', { knowledge_graph: newId() }],
  ])('is not made with %s', async (_what, body) => {
    expect((await api.call('POST', REPORTS, body)).status).toBe(422);
  });
});

describe('a report of another organization', () => {
  it('is answered as a missing one, byte for byte', async () => {
    const { id } = await requested({ knowledge_graph: graph, query: 'helmets' });
    await ended(id);
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/cancel'],
      ['GET', '/events'],
    ] as const) {
      const headers = path === '/events' ? { accept: 'text/event-stream' } : {};
      const at = (one: string) => api.call(method, `${REPORTS}/${one}${path}`, undefined, headers, api.foreignKey);
      const [foreign, missing] = [await at(id), await at(newId())];
      expect(foreign.status).toBe(404);
      const withoutId = ({ bytes }: { bytes: string }) => bytes.replace(/"request_id":"[^"]*"/, '');
      expect(withoutId(foreign)).toBe(withoutId(missing));
    }
    const body = { knowledge_graph: graph };
    const [foreign, missing] = [body, { knowledge_graph: newId() }].map((one) =>
      api.call('POST', REPORTS, one, {}, api.foreignKey),
    );
    expect((await foreign)?.bytes.replace(graph, '')).toBe((await missing)?.bytes.replace(/[0-9a-f-]{36}/, ''));
    expect((await api.call('GET', REPORTS, undefined, {}, api.foreignKey)).bytes).not.toContain(id);
  });
});

describe('research', () => {
  it('continues where a worker died, and no step is recorded twice', async () => {
    await withoutWorker(async () => {
      const { id } = await requested({ knowledge_graph: graph, query: 'Ada, warehouse Bremen' });
      await (
        await worker(id, 0)
      )();
      expect(await types(id)).toEqual(['ReportRequested', 'ResearchPlanned']);
      // Dies while it searches; what it has found is lost.
      const died = new AbortController();
      const search: Knowledge['search'] = async () => {
        died.abort(new Error('killed'));
        return new Promise(() => undefined);
      };
      expect(await (await worker(id, 1, { search }))(died.signal)).toMatchObject({ kind: 'again' });
      // Two workers do the step at the same time.
      await Promise.all([(await worker(id, 1))(), (await worker(id, 1))()]);
      expect(await types(id)).toEqual(['ReportRequested', 'ResearchPlanned', 'GraphSearched']);
      // An event that is delivered again after its successor does nothing.
      await (
        await worker(id, 1, { search: () => expect.unreachable() })
      )();
      expect(await types(id)).toHaveLength(3);
    });
    // A new worker finishes it.
    const [report] = (await api.call('GET', `${REPORTS}?size=1`)).json.items;
    const { results, status } = await ended(report.id);
    expect(status).toBe('Ready');
    expect(results).toBe((await written({ query: 'Ada, warehouse Bremen' })).results);
    const steps = await types(report.id);
    expect(steps.filter((type) => type === 'ReportWritten')).toHaveLength(1);
    expect(steps.at(-1)).toBe('ReportWritten');
  });

  it('that was cancelled stays so, whatever a worker finds meanwhile', async () => {
    await withoutWorker(async () => {
      const { id } = await requested({ knowledge_graph: graph, query: 'warehouse' });
      await (
        await worker(id, 0)
      )();
      const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const search: Knowledge['search'] = async (...args) => {
        reached.resolve();
        await go.promise;
        return api.api.features.knowledge.search(...args);
      };
      const slow = (await worker(id, 1, { search }))();
      await reached.promise;
      const cancelled = await api.call('POST', `${REPORTS}/${id}/cancel`);
      expect(cancelled).toMatchObject({ status: 200, json: { status: 'Cancelled', results: '' } });
      go.resolve();
      await slow;
      expect((await api.call('POST', `${REPORTS}/${id}/cancel`)).json).toEqual(cancelled.json);
      expect(await types(id)).toEqual(['ReportRequested', 'ResearchPlanned', 'ReportCancelled']);
    });
  });

  it('fails when its graph was deleted meanwhile', async () => {
    const own = await api.newGraph();
    await withoutWorker(async () => {
      const { id } = await requested({ knowledge_graph: own, query: 'warehouse' });
      await (
        await worker(id, 0)
      )();
      expect((await api.call('DELETE', `/api/v1/knowledge/${own}`)).status).toBe(204);
      await (
        await worker(id, 1)
      )();
      expect(await ended(id)).toMatchObject({ status: 'Failed: the knowledge graph was deleted', results: '' });
    });
  });

  it('ends after its last attempt', async () => {
    await withoutWorker(async () => {
      const { id } = await requested({ knowledge_graph: graph, query: 'warehouse' });
      const search = () => Promise.reject(new Error('always'));
      expect(await (await worker(id, 0, { search }))()).toMatchObject({ kind: 'again', isFailure: true });
      expect(await (await worker(id, 0, { search }))(undefined, 8)).toEqual({ kind: 'done', isGivenUp: true });
      expect((await ended(id)).status).toBe('Failed: a step of the research failed repeatedly');
    });
  });
});

describe('the events of a report', () => {
  it('are sent live, and say how far the research is', async () => {
    const url = await api.api.listen();
    const { id } = await requested({ knowledge_graph: graph, query: 'Ada, warehouse Bremen' });
    await ended(id);
    const headers = { authorization: `Bearer ${api.api.rootKey}`, accept: 'text/event-stream' };
    const response = await fetch(`${url}${REPORTS}/${id}/events?after=1`, { headers });
    const text = await response.text();
    const frames = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json ?? ''));
    const all = await types(id);
    expect(frames.slice(0, 1)).toMatchObject([
      { type: 'report.progress', data: { status: 'Researching', progress: { questions: 3, searched: 0 } } },
    ]);
    const ready = frames.find(({ type }: Json) => type === 'report.ready');
    expect(ready).toMatchObject({ data: { id, status: 'Ready' } });
    expect(frames.filter(({ type }: Json) => type?.startsWith('report.'))).toHaveLength(all.length - 1);
  });
});

it('is printed by the command, with its sources', async () => {
  const { eventStore, redis } = api.api.stores;
  const environment = { EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url };
  const run = (...args: string[]) => runParley(environment, 'report', ...args);
  const { exitCode, stdout, stderr } = await run('warehouse', 'safety', '--graph', graph);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(/^# warehouse safety\n\n\*Extractive report: /);
  expect(stdout).toContain('1. **Warehouse handbook**, Safety: Forklifts');
  const asJson = JSON.parse((await run('warehouse safety', '-g', graph, '--json')).stdout);
  expect(asJson).toMatchObject({ status: 'Ready', results: stdout, progress: { questions: 2, searched: 2 } });
  expect(await run('warehouse', '-g', 'Nowhere')).toMatchObject({
    exitCode: 1,
    stderr: 'parley: there is no knowledge graph Nowhere\n',
  });
});
