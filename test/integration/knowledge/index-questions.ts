/** What the tests of the index of one graph share: indexes on files of their own, and questions to them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll } from 'vitest';

import type { GraphEvent } from '#libs/features/knowledge/graph.ts';
import type { IndexedEvent } from '#libs/features/knowledge/search/event-writer.ts';
import { GraphIndex } from '#libs/features/knowledge/search/graph-index.ts';

export const START_MS = Date.parse('2026-01-01T00:00:00.000Z');
export const HOUR_MS = 3_600_000;

/** One event an hour. */
export const numbered = (events: readonly GraphEvent[]): IndexedEvent[] =>
  events.map((event, revision) => ({ revision, id: `event-${revision}`, atMs: START_MS + revision * HOUR_MS, event }));

/** A folder for the test file, which is removed after its last test. */
export function useIndexFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'parley-test-index-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let files = 0;
  const newPath = () => join(folder, `${files++}.sqlite`);

  function indexOf(events: readonly GraphEvent[], path = newPath()): GraphIndex {
    const index = new GraphIndex(path);
    index.write(numbered(events));
    return index;
  }

  return { folder, newPath, indexOf };
}

interface Options {
  readonly limit?: number;
  readonly asOf?: { readonly sequence: number } | { readonly atMs: number };
  readonly validAtMs?: number;
}

export function ask(index: GraphIndex, query: string, { limit = 50, asOf, validAtMs }: Options = {}) {
  const question = { query, limit, validAtMs: validAtMs ?? null, asOf: asOf ?? null };
  return index.search({ ...question, nowMs: START_MS + 1_000_000 * HOUR_MS });
}

export const nodeNames = (index: GraphIndex, query: string, options?: Options) =>
  ask(index, query, options)?.nodes.map(({ name }) => name);
export const facts = (index: GraphIndex, query: string, options?: Options) =>
  ask(index, query, options)?.edges.map(({ fact }) => fact);
