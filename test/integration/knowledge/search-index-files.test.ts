/** Files of indexes: damaged, of other versions, closed, evicted and deleted. */
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { describe, expect, it } from 'vitest';

import { isUnusable } from '#libs/platform/textindex/index.ts';
import { GraphIndex, GraphIndexes } from '#libs/features/knowledge/search/graph-index.ts';

import { learned, node } from './graph-facts.ts';
import { ask, HOUR_MS, numbered, useIndexFolder } from './index-questions.ts';

const { folder, indexOf, newPath } = useIndexFolder();

describe('a file', () => {
  const names = Array.from({ length: 2_000 }, (_, at) => `thing ${at}`);
  const events = [learned(names.map((name) => node(name, 'about many things')))];

  it.each<[string, (path: string) => void]>([
    ['that is no database', (path) => writeFileSync(path, 'x'.repeat(10_000))],
    ['of another version', (path) => new DatabaseSync(path).exec('pragma user_version = 99')],
    ['of another database', (path) => (rmSync(path), new DatabaseSync(path).exec('create table other (x)'))],
    ['that was cut', (path) => truncateSync(path, 20_000)],
    ['with pages of zeros', (path) => writeFileSync(path, readFileSync(path).fill(0, 9_000))],
  ])('%s is reported as unusable', (_, damage) => {
    const path = newPath();
    indexOf(events, path).close();
    damage(path);
    let failure: unknown;
    try {
      const index = new GraphIndex(path);
      ask(index, 'thing');
      index.close();
    } catch (error) {
      failure = error;
    }
    expect(failure).toSatisfy(isUnusable);
  });

  it.each([
    ['content that is cut', `update content set json = substr(json, 1, 9)`],
    ['content of another kind', `update content set json = '[]'`],
    ['content without its fields', `update content set json = '{}'`],
    ['times that are none', `update event set at = 'long ago'`],
    ['postings of other rows', `update posting set data = zeroblob(length(data))`],
    ['postings that are cut', `update posting set data = substr(data, 1, 1)`],
  ])('with %s in a table is reported as unusable', (_, sql) => {
    const path = newPath();
    indexOf(events, path).close();
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
    const index = new GraphIndex(path);
    let failure: unknown;
    try {
      ask(index, 'thing');
    } catch (error) {
      failure = error;
    }
    index.close();
    expect(failure).toSatisfy(isUnusable);
  });

  it('with damaged postings gets no further ones', () => {
    const path = newPath();
    indexOf(events, path).close();
    const database = new DatabaseSync(path);
    database.exec(`update posting set data = zeroblob(length(data))`);
    database.close();
    const index = new GraphIndex(path);
    let failure: unknown;
    try {
      index.write(numbered([...events, learned([node('thing 2000', 'about many things')])]));
    } catch (error) {
      failure = error;
    }
    index.close();
    expect(failure).toSatisfy(isUnusable);
  });

  it('is not built again for a failure that says nothing about its content', () => {
    const failures = [5, 6, 10, 13, 14, 15, 522, 11, 26, 267].map((errcode) => Object.assign(new Error(), { errcode }));
    expect(failures.filter(isUnusable).map(({ errcode }) => errcode)).toEqual([11, 26, 267]);
  });

  it('stays open with a limited number of others', () => {
    const indexes = new GraphIndexes({ folder: join(folder, 'open'), maxOpen: 2, maxBytes: 1e9 });
    for (const id of ['a', 'b', 'c']) indexes.use(id, (index) => index.write(numbered(events)));
    expect(indexes.measures.count).toBe(2);
    expect(indexes.use('a', (index) => index.progress())).toEqual({ revision: 0, event: 'event-0' });
    indexes.close();
    expect(indexes.measures).toEqual({ count: 0, bytes: 0 });
  });

  it('counts the pages of it that SQLite keeps in memory', () => {
    const indexes = new GraphIndexes({ folder: join(folder, 'pages'), maxOpen: 9, maxBytes: 1_000_000 });
    for (const id of ['a', 'b', 'c', 'd']) indexes.use(id, (index) => index.write(numbered(events)));
    const size = statSync(join(folder, 'pages', 'a.sqlite')).size;
    expect(size).toBeGreaterThan(300_000);
    expect(indexes.measures.count).toBe(Math.floor(1_000_000 / size));
    expect(indexes.measures.bytes).toBeGreaterThanOrEqual(size);
    indexes.close();
  });

  it('of a graph that was deleted is gone, and so are its vectors', () => {
    const of = join(folder, 'deleted');
    const indexes = new GraphIndexes({
      folder: of,
      maxOpen: 9,
      maxBytes: 1e9,
      vectors: { key: 'm', minSimilarity: 0, maxBytes: 1e9 },
    });
    for (const id of ['a', 'ab']) {
      indexes.use(id, (index) => index.write(numbered(events)));
      indexes.use(id, (index) => index.missingVectors(1));
    }
    writeFileSync(join(of, 'a.other.vectors'), '');
    indexes.remove('a');
    expect(readdirSync(of).filter((name) => name.startsWith('a.'))).toEqual([]);
    expect(indexes.has('a')).toBe(false);
    indexes.close();
    expect(readdirSync(of).toSorted()).toEqual(['ab.m.vectors', 'ab.sqlite']);
  });

  it('that was not used for 30 days is deleted, unless it is open', () => {
    const of = join(folder, 'unused');
    const indexes = new GraphIndexes({ folder: of, maxOpen: 9, maxBytes: 1e9 });
    for (const id of ['old', 'new', 'open']) indexes.use(id, (index) => index.write(numbered(events)));
    indexes.close();
    indexes.use('open', (index) => index.progress());
    writeFileSync(join(of, 'old.m.vectors'), '');
    const old = new Date(Date.now() - 31 * 24 * HOUR_MS);
    for (const name of readdirSync(of)) if (!name.startsWith('new')) utimesSync(join(of, name), old, old);
    indexes.removeUnused(Date.now());
    indexes.close();
    expect(readdirSync(of).toSorted()).toEqual(['new.sqlite', 'open.sqlite']);
    // Its time is that of its last use.
    utimesSync(join(of, 'new.sqlite'), old, old);
    indexes.use('new', (index) => index.progress());
    indexes.close();
    indexes.removeUnused(Date.now());
    expect(readdirSync(of)).toContain('new.sqlite');
  });
});
