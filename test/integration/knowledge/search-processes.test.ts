/** Processes that keep their indexes in one folder, while another one writes and one of them is killed. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { afterAll, beforeAll, expect, it } from 'vitest';

import type { Question, SearchResult } from '#libs/features/knowledge/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

const SCRIPT = join(import.meta.dirname, '../../support/knowledge/search.process.ts');
/** Facts that a transaction takes about a second to index. */
const REQUESTS = 6;
const NODES = 400;

let api: TestApi;
let folder: string;
/** Lives until the end. */
let other: Searcher;
const children: ChildProcess[] = [];

beforeAll(async () => {
  api = await startTestApi();
  folder = await mkdtemp(join(tmpdir(), 'parley-test-processes-'));
  other = await startSearcher();
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await api.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Searcher {
  /** Repeats the question while the index is built. */
  search(graphId: string, question: Question): Promise<SearchResult>;
  /** `kill -9`. */
  kill9(): Promise<void>;
}

async function startSearcher(): Promise<Searcher> {
  const env = { ...process.env, EVENTSTORE_URL: api.stores.eventStore.url, FOLDER: folder };
  const child = fork(SCRIPT, [], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  children.push(child);
  await once(child, 'message');
  let lastId = 0;
  const waiting = new Map<number, (reply: { result?: SearchResult; failure?: string }) => void>();
  child.on('message', (reply: { id: number; result?: SearchResult; failure?: string }) =>
    waiting.get(reply.id)?.(reply),
  );
  const ask = (graphId: string, question: Question) =>
    new Promise<{ result?: SearchResult; failure?: string }>((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      child.send({ id, graphId, question });
    });
  return {
    async search(graphId, question) {
      for (;;) {
        const { result, failure } = await ask(graphId, question);
        if (result !== undefined) return result;
        if (failure?.includes('is being built') !== true) throw new Error(failure);
      }
    },
    async kill9() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function post(path: string, body: object): Promise<{ id: string }> {
  const answer = await api.call({ method: 'POST', url: `/api/v1/knowledge${path}`, key: api.rootKey, body });
  expect(answer.status).toBe(200);
  return answer.json;
}

/** Whether a process is in a transaction that writes events to the file. */
function isBeingWritten(path: string): boolean {
  if (!existsSync(path)) return false;
  const database = new DatabaseSync(path, { timeout: 0 });
  const isRefused = (sql: string): boolean => {
    try {
      database.exec(sql);
      return false;
    } catch {
      return true;
    }
  };
  // Its tables are created in a transaction before.
  const isWritten = !isRefused('select * from progress') && isRefused('begin immediate');
  database.close();
  return isWritten;
}

const count = { query: 'thing', limit: 1 };

it('a process that is killed in the middle of a transaction leaves an index that another one completes', async () => {
  const { id } = await post('', { name: `Graph ${newId()}` });
  for (let request = 0; request < REQUESTS; request++) {
    const nodes = Array.from({ length: NODES }, (_, at) => ({
      name: `Thing ${request} ${at}`,
      summary: Array.from({ length: 20 }, (__, word) => `word${(at * 31 + word * 7 + request) % 5_000}`).join(' '),
    }));
    await post(`/${id}/facts`, { nodes });
  }
  const killed = await startSearcher();
  killed.search(id, count).catch(() => undefined);
  await eventually(() => isBeingWritten(join(folder, `${id}.sqlite`)), { everyMs: 1 });
  const answer = other.search(id, count);
  await killed.kill9();
  expect(await answer).toMatchObject({ total_nodes: REQUESTS * NODES });

  // The index is that of a process with a folder of its own.
  const url = `/api/v1/knowledge/${id}/search?query=word7%20thing&limit=50`;
  const { json } = await api.call({ method: 'GET', url, key: api.rootKey });
  expect(await other.search(id, { query: 'word7 thing', limit: 50 })).toEqual(json);
}, 120_000);

it('two processes see all that a third one has written, and the same, while both catch up', async () => {
  const { id } = await post('', { name: `Graph ${newId()}` });
  const searchers = [other, await startSearcher()];
  const progress = { written: 0, isWriting: true };
  const writer = (async () => {
    for (let request = 0; request < 25; request++) {
      await post(`/${id}/facts`, { nodes: Array.from({ length: 5 }, (_, at) => ({ name: `Thing ${request} ${at}` })) });
      progress.written += 5;
    }
    progress.isWriting = false;
  })();
  const reading = searchers.map(async (searcher) => {
    while (progress.isWriting) {
      const before = progress.written;
      const { total_nodes: total } = await searcher.search(id, count);
      expect(total).toBeGreaterThanOrEqual(before);
      expect(total % 5).toBe(0);
    }
  });
  await Promise.all([writer, ...reading]);
  const answers = await Promise.all(searchers.map((searcher) => searcher.search(id, { query: 'thing 7', limit: 50 })));
  expect(answers[0]).toMatchObject({ total_nodes: 125 });
  expect(answers[1]).toEqual(answers[0]);
}, 120_000);
