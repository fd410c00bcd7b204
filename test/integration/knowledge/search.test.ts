/** Search through the API, on real stores. */
import { copyFileSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { GraphSearch } from '#libs/features/knowledge/search/graph-search.ts';
import { newId } from '#libs/kernel/ids.ts';
import { type Answer, type Call, startTestApi, type TestApi, type TestInstance } from '#test/support/test-api.ts';

const GRAPHS = '/api/v1/knowledge';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object, instance: TestInstance = api): Promise<Answer> {
  return instance.call({ method, url, key: api.rootKey, ...(body !== undefined && { body }) });
}

async function graphOf(facts: object): Promise<string> {
  const { id } = (await call('POST', GRAPHS, { name: `Graph ${newId()}` })).json;
  expect((await call('POST', `${GRAPHS}/${id}/facts`, facts)).status).toBe(200);
  return id;
}

const search = (id: string, query: Record<string, string>, instance?: TestInstance) =>
  call('GET', `${GRAPHS}/${id}/search?${new URLSearchParams(query)}`, undefined, instance);

const people = {
  nodes: [{ name: 'Ada Lovelace', summary: 'Mathematician', labels: ['Person'] }, { name: 'Charles Babbage' }],
  edges: [
    {
      source: 'Ada Lovelace',
      target: 'Charles Babbage',
      fact: 'Ada worked with Charles',
      valid_at: '1833-06-05T00:00:00Z',
    },
    {
      source: 'Ada Lovelace',
      target: 'London',
      fact: 'Ada lived in London',
      valid_at: '1815-12-10T00:00:00Z',
      invalid_at: '1852-11-27T00:00:00Z',
    },
  ],
};

describe('a search', () => {
  let id: string;
  beforeAll(async () => {
    id = await graphOf(people);
  });

  it('answers nodes and edges as the contract describes them', async () => {
    const { status, json } = await search(id, { query: 'mathematicians' });
    expect(status).toBe(200);
    expect(json).toEqual({
      ranking: 'words',
      total_nodes: 1,
      total_edges: 0,
      nodes: [
        {
          uuid: expect.any(String),
          name: 'Ada Lovelace',
          summary: 'Mathematician',
          labels: ['Person'],
          created_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
          sources: [],
        },
      ],
      edges: [],
    });
    expect((await search(id, { query: 'worked' })).json.edges).toMatchObject([
      { fact: 'Ada worked with Charles', valid_at: '1833-06-05T00:00:00.000Z', sources: [] },
    ]);
  });

  it('is of everything that is true now by default, and of another time on request', async () => {
    expect((await search(id, {})).json).toMatchObject({ total_nodes: 3, total_edges: 1 });
    expect((await search(id, { valid_at: '1850-01-01T00:00:00Z' })).json).toMatchObject({ total_edges: 2 });
    expect((await search(id, { valid_at: '1820-01-01T00:00:00Z', query: 'ada' })).json.edges).toMatchObject([
      { fact: 'Ada lived in London' },
    ]);
  });

  it('limits nodes and edges, and not the totals', async () => {
    const { json } = await search(id, { limit: '1', valid_at: '1850-01-01T00:00:00Z' });
    expect(json).toMatchObject({ total_nodes: 3, total_edges: 2, nodes: { length: 1 }, edges: { length: 1 } });
  });

  it('sees what was written before it, and the past as it was', async () => {
    const before = await search(id, { query: 'ada' });
    const sequence = Number((await call('GET', `${GRAPHS}/${id}`)).headers['etag']?.toString().replaceAll('"', '')) + 1;
    expect((await call('POST', `${GRAPHS}/${id}/facts`, { nodes: [{ name: 'Ada Byron' }] })).status).toBe(200);
    expect((await search(id, { query: 'ada' })).json.total_nodes).toBe(before.json.total_nodes + 1);
    expect((await search(id, { query: 'ada', as_of: String(sequence) })).json).toEqual(before.json);
    expect((await search(id, { as_of: '1' })).json).toMatchObject({ total_nodes: 0, nodes: [] });
    for (const as_of of ['0', '2001-01-01T00:00:00Z']) expect((await search(id, { as_of })).status).toBe(404);
  });

  it.each(['(a+)+$', '"', 'NEAR(', 'a* OR', '!?', 'the of', '🚀', '数据', 'قاعدة', '\0', 'x'.repeat(10_000)])(
    'of %j is answered',
    async (query) => {
      expect((await search(id, { query })).status).toBe(200);
    },
  );

  it.each([
    ['limit', '0'],
    ['limit', '51'],
    ['limit', 'ten'],
    ['valid_at', 'yesterday'],
    ['as_of', '-1'],
    ['as_of', 'soon'],
  ])('with %s=%s is refused', async (name, value) => {
    const { status, json } = await search(id, { [name]: value });
    expect(status).toBe(422);
    expect(json.detail[0].loc).toEqual(['query', name]);
  });

  it('of a graph that is missing, deleted or has an impossible id is a 404 of the same bytes', async () => {
    const deleted = await graphOf(people);
    await call('DELETE', `${GRAPHS}/${deleted}`);
    const answers = await Promise.all([newId(), deleted, 'no%20id', '..%2F..%2Fetc'].map((each) => search(each, {})));
    const [first] = answers;
    expect(first?.status).toBe(404);
    for (const { status, bytes } of answers) expect([status, bytes]).toEqual([404, first?.bytes]);
  });

  it('is counted and timed', async () => {
    await search(id, {});
    const metrics = await api.stores.platform.metrics.scrape();
    expect(metrics).toMatch(/parley_search_queries_total\{outcome="answered"\} [1-9]/);
    expect(metrics).toMatch(/parley_search_applied_events_total [1-9]/);
    expect(metrics).toMatch(/parley_search_open_indexes [1-9]/);
  });
});

describe('the indexes', () => {
  const question = { query: 'ada', limit: 10 };
  let folders: string;
  beforeAll(async () => {
    folders = await mkdtemp(join(tmpdir(), 'parley-test-search-'));
  });
  afterAll(() => rm(folders, { recursive: true, force: true }));

  /** @param name of a folder of the test's own */
  function openIndexes(name: string): GraphSearch {
    return new GraphSearch({ ...api.stores.platform, folder: join(folders, name), threads: 1 });
  }

  /** Opens the indexes, asks, and closes them: the file is complete then. */
  async function askOnce(name: string, id: string) {
    const indexes = openIndexes(name);
    try {
      return await indexes.search(id, question);
    } finally {
      await indexes.close();
    }
  }

  it('of two processes share a folder', async () => {
    const id = await graphOf(people);
    const other = await api.startInstance();
    try {
      for (let round = 0; round < 5; round++) {
        const facts = { nodes: [{ name: `Ada ${round}` }] };
        await call('POST', `${GRAPHS}/${id}/facts`, facts, round % 2 === 0 ? api : other);
        const answers = await Promise.all([search(id, { query: 'ada' }), search(id, { query: 'ada' }, other)]);
        expect(answers.map(({ json }) => json.total_nodes)).toEqual([round + 2, round + 2]);
        expect(answers[0]?.json).toEqual(answers[1]?.json);
      }
    } finally {
      await other.stop();
    }
  });

  it('answer after their thread was killed, also while they answer', async () => {
    const id = await graphOf(people);
    const indexes = openIndexes('killed');
    try {
      const before = await indexes.search(id, question);
      for (let round = 0; round < 3; round++) {
        const answers = Array.from({ length: 10 }, () => indexes.search(id, question));
        await indexes.threads[0]?.kill();
        for (const answer of await Promise.all(answers)) expect(answer).toEqual(before);
      }
    } finally {
      await indexes.close();
    }
  });

  it('see all that was appended before a question, also while they catch up for an earlier one', async () => {
    const id = await graphOf(people);
    const { store } = api.stores.platform;
    const [atEnd, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    async function* readStream(...read: Parameters<typeof store.readStream>): ReturnType<typeof store.readStream> {
      yield* store.readStream(...read);
      atEnd.resolve();
      await released.promise;
    }
    const indexes = new GraphSearch({
      ...api.stores.platform,
      store: { readStream },
      folder: join(folders, 'slow'),
      threads: 1,
    });
    try {
      const earlier = indexes.search(id, question);
      await atEnd.promise;
      expect((await call('POST', `${GRAPHS}/${id}/facts`, { nodes: [{ name: 'Ada Byron' }] })).status).toBe(200);
      const later = indexes.search(id, question);
      released.resolve();
      await earlier;
      expect(await later).toMatchObject({ total_nodes: 2 });
    } finally {
      await indexes.close();
    }
  });

  it.each<[string, (path: string) => void]>([
    ['cut', (path) => truncateSync(path, 9_000)],
    ['overwritten', (path) => writeFileSync(path, 'no database')],
  ])('are built again after a file was %s', async (how, damage) => {
    const id = await graphOf(people);
    const before = await askOnce(how, id);
    damage(join(folders, how, `${id}.sqlite`));
    expect(await askOnce(how, id)).toEqual(before);
  });

  it.each([
    ['content', `update content set json = '{'`],
    ['postings', `update posting set data = zeroblob(length(data))`],
  ])('are built again after rows of %s were damaged', async (what, sql) => {
    const id = await graphOf(people);
    const before = await askOnce(what, id);
    const database = new DatabaseSync(join(folders, what, `${id}.sqlite`));
    database.exec(sql);
    database.close();
    expect(await askOnce(what, id)).toEqual(before);
  });

  it('of a deleted graph leave no files', async () => {
    const id = await graphOf(people);
    const { cacheDir } = api.stores.platform;
    expect((await search(id, {})).status).toBe(200);
    const filesOf = async () => (await readdir(join(cacheDir, 'search'))).filter((name) => name.startsWith(id));
    expect(await filesOf()).toContain(`${id}.sqlite`);
    expect((await call('DELETE', `${GRAPHS}/${id}`)).status).toBe(204);
    expect((await search(id, {})).status).toBe(404);
    expect(await filesOf()).toEqual([]);
  });

  it('refuse questions that wait too long for their turn', async () => {
    const id = await graphOf(people);
    const indexes = new GraphSearch({
      ...api.stores.platform,
      folder: join(folders, 'wait'),
      threads: 1,
      maxWaitMs: 50,
    });
    try {
      expect(await indexes.search(id, question)).toMatchObject({ total_nodes: 1 });
      const [thread] = indexes.threads;
      if (thread === undefined) throw new Error('there is a thread');
      const released = Promise.withResolvers<void>();
      const run = thread.run.bind(thread);
      // Searches end late, as behind a large write.
      thread.run = async (task) => {
        if (task.kind === 'search') await released.promise;
        return run(task);
      };
      const begun = [indexes.search(id, question), indexes.search(id, question)];
      await expect(indexes.search(id, question)).rejects.toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 });
      released.resolve();
      expect(await Promise.all(begun)).toMatchObject([{ total_nodes: 1 }, { total_nodes: 1 }]);
    } finally {
      await indexes.close();
    }
  });

  it('are built again if the log has other events than they', async () => {
    const id = await graphOf(people);
    const other = await graphOf({ nodes: [{ name: 'Ada of another log' }] });
    const before = await askOnce('log', id);
    await askOnce('log', other);
    copyFileSync(join(folders, 'log', `${other}.sqlite`), join(folders, 'log', `${id}.sqlite`));
    expect(await askOnce('log', id)).toEqual(before);
  });

  it('are in a folder that others cannot read, which is created again when it was removed', async () => {
    const ids = [await graphOf(people), await graphOf(people)];
    const indexes = openIndexes('removed');
    const path = join(folders, 'removed');
    try {
      for (const id of ids) {
        expect(await indexes.search(id, question)).toMatchObject({ total_nodes: 1 });
        expect((await stat(path)).mode & 0o777).toBe(0o700);
        await rm(path, { recursive: true });
      }
    } finally {
      await indexes.close();
    }
  });

  it('refuse questions once they are closed', async () => {
    const indexes = openIndexes('closed');
    await indexes.close();
    await expect(indexes.search(newId(), question)).rejects.toMatchObject({ code: 'stopping' });
  });
});
