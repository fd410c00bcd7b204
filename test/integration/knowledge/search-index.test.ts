/** The index of one graph, on files of its own. */
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';

import type { GraphEvent } from '#libs/features/knowledge/graph.ts';
import { isUnusable } from '#libs/platform/textindex/index.ts';
import type { IndexedEvent } from '#libs/features/knowledge/search/event-writer.ts';
import { GraphIndex, GraphIndexes } from '#libs/features/knowledge/search/graph-index.ts';
import { rounds } from '#test/support/rounds.ts';

import { edge, learned, node } from './graph-facts.ts';

const folder = mkdtempSync(join(tmpdir(), 'parley-test-index-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const newPath = () => join(folder, `${files++}.sqlite`);
const START_MS = Date.parse('2026-01-01T00:00:00.000Z');
const HOUR_MS = 3_600_000;

/** One event an hour. */
const numbered = (events: readonly GraphEvent[]): IndexedEvent[] =>
  events.map((event, revision) => ({ revision, id: `event-${revision}`, atMs: START_MS + revision * HOUR_MS, event }));

function indexOf(events: readonly GraphEvent[], path = newPath()): GraphIndex {
  const index = new GraphIndex(path);
  index.write(numbered(events));
  return index;
}

interface Options {
  readonly limit?: number;
  readonly asOf?: { readonly sequence: number } | { readonly atMs: number };
  readonly validAtMs?: number;
}

function ask(index: GraphIndex, query: string, { limit = 50, asOf, validAtMs }: Options = {}) {
  const question = { query, limit, validAtMs: validAtMs ?? null, asOf: asOf ?? null };
  return index.search({ ...question, nowMs: START_MS + 1_000_000 * HOUR_MS });
}

const nodeNames = (index: GraphIndex, query: string, options?: Options) =>
  ask(index, query, options)?.nodes.map(({ name }) => name);
const facts = (index: GraphIndex, query: string, options?: Options) =>
  ask(index, query, options)?.edges.map(({ fact }) => fact);

describe('a query', () => {
  const index = indexOf([
    learned([node('Vacuum'), node('Autovacuum daemon', 'Removes dead rows'), node('Transaction isolation')]),
    learned([node('数据库索引'), node('قاعدة البيانات'), node('Café'), node('pg_dump'), node('Rocket 🚀')]),
    learned([node('The'), node('Indexes on expressions'), node('Reindexing')], {
      edges: [edge('Vacuum', 'Indexes on expressions', 'cleans up')],
    }),
  ]);

  it.each([
    ['vacuum', 'Vacuum'],
    ['VACCUUM', 'Vacuum'],
    ['transacton isolatoin', 'Transaction isolation'],
    ['autovac', 'Autovacuum daemon'],
    ['index', 'Indexes on expressions'],
    ['索引', '数据库索引'],
    ['库', '数据库索引'],
    ['بيانات', 'قاعدة البيانات'],
    ['cafe', 'Café'],
    ['dump', 'pg_dump'],
    ['pg_dump', 'pg_dump'],
    ['🚀', 'Rocket 🚀'],
    ['the', 'The'],
    ['removes rows', 'Autovacuum daemon'],
  ])('%j finds %j first', (query, name) => {
    expect(nodeNames(index, query)?.[0]).toBe(name);
  });

  it('puts what has more of its words before what has one of them often', () => {
    const both = indexOf([learned([node('red red red', 'red red red'), node('red blue'), node('blue')])]);
    expect(nodeNames(both, 'blue red')?.[0]).toBe('red blue');
  });

  it.each(['Vacuum', 'vacuum', ' "VACUUM"! '])('puts the node whose name is %j before all others', (query) => {
    const summary = 'vacuum vacuum vacuum';
    const named = indexOf([
      learned([node('Vacuum vacuum', summary), node('Vacuum full', summary), node('Other', summary)], {
        document: 'about',
      }),
      learned([node('Vacuum')], { document: 'long' }),
      learned(
        Array.from({ length: 60 }, (_, at) => node(`Vacuum vacuum ${at}`, summary)),
        { document: 'many' },
      ),
    ]);
    expect(nodeNames(named, query, { limit: 3 })?.[0]).toBe('Vacuum');
  });

  it('puts a signature before others by the name that it gives, whatever its parameters are', () => {
    const parameters =
      "file, mode='r', buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None";
    const functions = indexOf([
      learned([node('Opening files', 'open open open opens'), node('open dialog', 'open')], { document: 'other' }),
      learned([node(`open(${parameters})`, 'Open file and return a file object.'), node('abs(x)')]),
    ]);
    expect(nodeNames(functions, 'open')?.[0]).toBe(`open(${parameters})`);
    expect(nodeNames(functions, 'open(file)')?.[0]).toBe(`open(${parameters})`);
    expect(nodeNames(functions, 'closefd')).toEqual([`open(${parameters})`]);
  });

  it('judges a match in a name by the length of the name, not by that of its text', () => {
    const text = 'one two three four five six seven eight nine ten '.repeat(40);
    const named = indexOf([
      learned([node('Print settings of the older machines', 'x')], { document: 'a' }),
      learned([node('Print jobs', text)], { document: 'b' }),
      learned([node('Colours', text), node('Paper', 'of no use')], { document: 'c' }),
    ]);
    expect(nodeNames(named, 'print')?.[0]).toBe('Print jobs');
  });

  it.each([
    ['printing', 'Printing of old maps', 'The prints'],
    ['speeds', 'All speeds that were measured', 'Speed'],
    ['organise', 'How we organise work', 'Organization'],
  ])('for %j puts %j before %j', (query, exact, inflected) => {
    const both = indexOf([
      learned([node(inflected)], { document: 'a' }),
      learned([node(exact)], { document: 'b' }),
      learned([node('Others are here')], { document: 'c' }),
    ]);
    expect(nodeNames(both, query)).toEqual([exact, inflected]);
  });

  it('counts a word more that it repeats', () => {
    const two = indexOf([learned([node('A', 'red'), node('B', 'blue')])]);
    expect(nodeNames(two, 'red blue, blue')?.[0]).toBe('B');
    expect(nodeNames(two, 'red red blue')?.[0]).toBe('A');
  });

  const polite =
    'Good morning dear colleagues, thank you very much for the excellent service last week, everybody here was happy with ' +
    'the fast delivery and the friendly person who called; today we have a small question about the contract:';
  it.each([
    ['before', `${polite} when does the lighthouse warranty expire?`],
    ['after', `When does the lighthouse warranty expire? ${polite}`],
  ])('of a long message finds the question %s what is said besides', (_, query) => {
    const said = polite.match(/[a-z]{4,}/g) ?? [];
    const letters = said.map(
      (_word, at) => `A letter of one page says ${[...said, ...said].slice(at, at + 4).join(' ')} on it`,
    );
    const many = indexOf([
      ...letters.map((text, at) => learned([node(`Letter ${at}`, text)], { document: `letter ${at}` })),
      learned([node('Terms', 'The warranty of a lighthouse expires after ten years.')], { document: 'terms' }),
    ]);
    expect(nodeNames(many, query)?.[0]).toBe('Terms');
  });

  it.each([
    ['wifi', 'Wi-Fi'],
    ['Wi-Fi', 'wifi'],
    ['node.js', 'nodejs'],
    ['nodejs', 'Node.js'],
    ['e-mail', 'email'],
    ['email', 'e‑mail'],
    ['AT&T', 'ATT'],
    ['speeds', 'speed'],
    ['speed', 'speeds'],
    ['development', 'developed'],
    ['C#', 'C#'],
    ['c++', 'C++17'],
    ['notepad', 'Notepad++'],
    ['hyphenation', 'hyphen\u00adation'],
  ])('%j finds %j, before what only looks like it', (query, text) => {
    const others = node('Others', 'spe C dev wired noder spell de elopement');
    expect(nodeNames(indexOf([learned([node('Found', `the ${text} of it`), others])]), query)?.[0]).toBe('Found');
  });

  it.each([
    ['c#', 'c++'],
    ['c++', 'C and C#'],
    ['speed', 'spell'],
    ['notepad++', 'c++'],
  ])('%j does not find %j', (query, text) => {
    expect(nodeNames(indexOf([learned([node('Other', `the ${text} of it`)])]), query)).toEqual([]);
  });

  it('puts a node by its name before others as it was named then only', () => {
    const renamed = indexOf([
      learned([node('Plan'), { ...node('Plan B'), name: 'Plan' }, node('Plan plan', 'plan')]),
      learned([{ ...node('Plan B'), name: 'Plan B plan plan' }]),
    ]);
    const firstTwo = (asOf: object) => nodeNames(renamed, 'plan', asOf)?.slice(0, 2);
    expect(firstTwo({ asOf: { sequence: 1 } })).toEqual(['Plan', 'Plan']);
    expect(firstTwo({})?.[0]).toBe('Plan');
  });

  it.each([
    ['one', 'other'],
    ['other', 'one'],
  ])('prefers the document %j, which has more of it, and lets it not fill the answer', (more, less) => {
    const two = indexOf([
      learned([node(`backup ${more}`), node(`backup again ${more}`), node(`cats ${more}`)], { document: more }),
      learned([node(`backup ${less}`), node(`dogs ${less}`), node(`cats ${less}`)], { document: less }),
    ]);
    const { nodes = [], total_nodes: total } = ask(two, 'backup', { limit: 2 }) ?? {};
    expect(nodes.map(({ sources }) => sources[0]?.document_id)).toEqual([more, less]);
    expect(total).toBe(3);
  });

  it.each([
    '(a+)+$',
    '"',
    "'",
    '"unclosed',
    'NEAR(',
    'a AND NOT',
    '{name}: x',
    '-vacuum',
    'vacuum*',
    '^',
    '\0',
    '%',
    '\ud800',
  ])('of hostile text %j is answered', (query) => {
    expect(ask(index, query)).toMatchObject({ total_nodes: expect.any(Number) });
  });

  it('of 1 MB is answered from its beginning', () => {
    expect(nodeNames(index, `vacuum ${'isolation level '.repeat(65_536)}`)).toContain('Vacuum');
    expect(ask(index, '('.repeat(1_000_000))?.total_nodes).toBe(0);
  });

  it.each(['', ' ', '*', ' * '])('of %j lists the newest', (query) => {
    const found = ask(index, query, { limit: 3 });
    expect(found).toMatchObject({ total_nodes: 11, total_edges: 1 });
    expect(found?.nodes.map(({ name }) => name).sort()).toEqual(['Indexes on expressions', 'Reindexing', 'The']);
  });

  it('orders equal matches by their ids', () => {
    const names = Array.from({ length: 30 }, (_, at) => `same${at}`);
    const same = indexOf([learned(names.map((name) => node(name, 'word')))]);
    const ids = ask(same, 'word')?.nodes.map(({ uuid }) => uuid) ?? [];
    expect(ids).toHaveLength(30);
    expect(ids).toEqual(ids.toSorted());
  });

  it('counts all matches, whatever its limit', () => {
    const names = Array.from({ length: 120 }, (_, at) => `thing ${at}`);
    const many = indexOf([learned(names.map((name) => node(name)))]);
    expect(ask(many, 'thing', { limit: 1 })).toMatchObject({ total_nodes: 120, nodes: { length: 1 } });
  });
});

describe('facts in time', () => {
  it('end when a single-valued relation gets another target, and are true again when that is withdrawn', () => {
    const lives = (place: string) => edge('Ada', place, `Ada lives in ${place}`, { isSingleValued: true });
    const index = indexOf([
      learned([node('Ada')], { edges: [lives('London')] }),
      learned([], { document: 'd', edges: [lives('Paris')] }),
      { type: 'FactsWithdrawn.v1', data: { documentId: 'd', beforeRevision: null } },
    ]);
    expect(facts(index, 'ada', { asOf: { sequence: 1 } })).toEqual(['Ada lives in London']);
    expect(facts(index, 'ada', { asOf: { sequence: 2 } })).toEqual(['Ada lives in Paris']);
    expect(ask(index, 'ada', { asOf: { sequence: 2 }, validAtMs: START_MS })?.edges).toMatchObject(
      [
        { fact: 'Ada lives in London', invalid_at: '2026-01-01T01:00:00.000Z' },
        { fact: 'Ada lives in Paris', invalid_at: null },
      ].slice(0, 2),
    );
    expect(facts(index, 'ada')).toEqual(['Ada lives in London']);
  });

  it('of a single-valued relation are those of its latest statement, whatever its case and when it was declared', () => {
    const status = (is: string, name: string, isSingleValued: boolean) =>
      learned([], { edges: [{ ...edge('Order', is, `Order is ${is}`, { isSingleValued }), name }] });
    const index = indexOf([
      status('open', 'status', false),
      status('open', 'status', true),
      status('closed', 'Status', true),
      status('open', 'status', true),
      status('open', 'status', true),
    ]);
    const known = [1, 2, 3, 4, 5].map((sequence) => facts(index, '*', { asOf: { sequence } }));
    expect(known).toEqual(['open', 'open', 'closed', 'open', 'open'].map((is) => [`Order is ${is}`]));
    expect(ask(index, 'closed', { validAtMs: START_MS + 2 * HOUR_MS })?.edges).toMatchObject([
      { invalid_at: '2026-01-01T03:00:00.000Z' },
    ]);
  });

  it('of a single-valued relation end at the next one, however many are learnt, in any order', () => {
    const day = (at: number) => new Date(START_MS + at * 24 * HOUR_MS).toISOString();
    const prices = Array.from({ length: 3_000 }, (_, at) =>
      edge('Bread', `${at}`, `Bread costs ${at}`, { isSingleValued: true, validAt: day(at) }),
    );
    const parts = Array.from({ length: 30 }, (_, part) => prices.toReversed().slice(part * 100, part * 100 + 100));
    const index = indexOf(parts.map((edges) => learned([], { edges })));
    expect(facts(index, 'bread')).toEqual(['Bread costs 2999']);
    expect(facts(index, 'bread', { validAtMs: Date.parse(day(7)) + HOUR_MS })).toEqual(['Bread costs 7']);
  });

  it('are those that were true at `valid_at`', () => {
    const worked = edge('Ada', 'Engine', 'Ada programs', {
      validAt: '2026-02-01T00:00:00.000Z',
      invalidAt: '2026-03-01T00:00:00.000Z',
    });
    const index = indexOf([learned([node('Ada')], { edges: [worked] })]);
    const at = (time: string) => facts(index, '*', { validAtMs: Date.parse(time) });
    expect([at('2026-01-31T23:59:59.999Z'), at('2026-02-01T00:00:00.000Z')]).toEqual([[], ['Ada programs']]);
    expect([at('2026-02-28T23:59:59.999Z'), at('2026-03-01T00:00:00.000Z')]).toEqual([['Ada programs'], []]);
  });

  it('of content that was withdrawn before it was learnt are ignored', () => {
    const index = indexOf([
      { type: 'FactsWithdrawn.v1', data: { documentId: 'd', beforeRevision: 5 } },
      learned([node('Old')], { document: 'd', revision: 4 }),
      learned([node('New')], { document: 'd', revision: 5 }),
    ]);
    expect(nodeNames(index, '*')).toEqual(['New']);
    expect(index.counts(2)).toEqual({ nodes: 1, edges: 0, documents: 1 });
  });

  it('stay while another document states them', () => {
    const index = indexOf([
      learned([node('Ada', 'from one')], { document: 'one' }),
      learned([node('Ada', 'from two')], { document: 'two' }),
      { type: 'FactsWithdrawn.v1', data: { documentId: 'two', beforeRevision: null } },
    ]);
    const sources = (sequence: number) =>
      ask(index, 'ada', { asOf: { sequence } })
        ?.nodes[0]?.sources.map(({ document_id }) => document_id)
        .sort();
    expect([sources(1), sources(2), sources(3)]).toEqual([['one'], ['one', 'two'], ['one']]);
    expect(ask(index, 'ada')).toMatchObject({ total_nodes: 1, nodes: [{ summary: 'from one' }] });
    expect(ask(index, 'two')?.total_nodes).toBe(0);
  });
});

describe('an answer as of a sequence does not depend on words that came later:', () => {
  it.each([
    ['a correctly spelled one', 'color', ['color']],
    ['longer ones', 'col', Array.from({ length: 20 }, (_, at) => `col${at}`)],
    ['inflections', 'colours', Array.from({ length: 20 }, (_, at) => `colour${'s'.repeat(at)}ing`)],
  ])('%s', (_, query, later) => {
    const index = indexOf([learned([node('colour')]), learned(later.map((name) => node(name)))]);
    expect(nodeNames(index, query, { asOf: { sequence: 1 } })).toEqual(['colour']);
  });
});

const WORDS = ['red', 'reds', 'green', 'blue', 'blau', 'bluish'];
const word = fc.constantFrom(...WORDS);
const someNode = fc.tuple(word, fc.option(word)).map(([name, summary]) => node(name, summary));
const someEdge = fc
  .record({
    ends: fc.tuple(word, word),
    isSingleValued: fc.boolean(),
    validAt: fc.constantFrom(null, '2026-01-01T05:30:00.000Z'),
    invalidAt: fc.constantFrom(null, '2026-01-01T07:30:00.000Z'),
  })
  .map(({ ends: [from, to], ...more }) => edge(from, to, `${from} is ${to}`, more));
const document = fc.constantFrom('one', 'two');
const revision = fc.integer({ min: 0, max: 3 });
const someEvent: fc.Arbitrary<GraphEvent> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .record({
        nodes: fc.array(someNode, { maxLength: 4 }),
        edges: fc.array(someEdge, { maxLength: 3 }),
        document: fc.option(document, { nil: undefined }),
        revision,
      })
      .map(({ nodes, ...more }) => learned(nodes, more)),
  },
  fc
    .record({ documentId: document, beforeRevision: fc.option(revision) })
    .map((data): GraphEvent => ({ type: 'FactsWithdrawn.v1', data })),
  someEdge.map((data): GraphEvent => ({
    type: 'EdgeEnded.v1',
    data: { edgeId: data.id, invalidAt: '2026-01-01T04:00:00.000Z' },
  })),
);
const QUERIES = ['*', 'red', 'blue green', 'bluu', 'bl'];

it('an answer as of a sequence is the answer of then, however the events were written', () => {
  fc.assert(
    fc.property(fc.array(someEvent, { minLength: 1, maxLength: 12 }), (events) => {
      const path = newPath();
      const [growing, beside, atOnce] = [new GraphIndex(path), new GraphIndex(path), indexOf(events)];
      const all = numbered(events);
      const then = all.map((event, at) => {
        // Another process may write to the file as well.
        (at % 2 === 0 ? growing : beside).write([event]);
        return answersOf(growing, event.atMs);
      });
      for (const [at, answers] of then.entries()) {
        const asOf = { sequence: at + 1 };
        for (const index of [growing, beside, atOnce])
          expect(answersOf(index, all[at]?.atMs ?? 0, asOf)).toEqual(answers);
        expect(ask(atOnce, '*', { asOf: { atMs: all[at]?.atMs ?? 0 } })).toEqual(ask(growing, '*', { asOf }));
      }
      for (const index of [growing, beside, atOnce]) index.close();
    }),
    { numRuns: rounds(25) },
  );
});

it('single-valued relations end at the next edge with another target, whatever is learnt, stated again and withdrawn', () => {
  const place = fc.constantFrom('A', 'B', 'C');
  const start = fc.constantFrom(null, 1, 2, 4);
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ place, start, by: fc.constantFrom('one', 'two') }) },
    fc.record({ withdrawn: fc.constantFrom('one', 'two') }),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 15 }), (steps) => {
      const isoAt = (hour: number) => new Date(START_MS + hour * HOUR_MS).toISOString();
      const events = steps.map((one, revision): GraphEvent => {
        if ('withdrawn' in one) {
          return { type: 'FactsWithdrawn.v1', data: { documentId: one.withdrawn, beforeRevision: revision } };
        }
        const validAt = one.start === null ? null : isoAt(one.start);
        const lives = edge('Ada', one.place, `in ${one.place} ${one.start}`, { validAt, isSingleValued: true });
        return learned([], { document: one.by, revision, edges: [lives] });
      });
      const index = new GraphIndex(newPath());
      // In the order in which they were first learnt, with the times of their statements that are left.
      const edges = new Map<string, { place: string; start: number | null; statedAt: [by: string, at: number][] }>();
      for (const [at, event] of numbered(events).entries()) {
        index.write([event]);
        const one = steps[at];
        if (one === undefined) continue;
        if ('withdrawn' in one) {
          for (const each of edges.values()) each.statedAt = each.statedAt.filter(([by]) => by !== one.withdrawn);
        } else {
          const fact = `in ${one.place} ${one.start}`;
          const known = edges.get(fact) ?? { place: one.place, start: one.start, statedAt: [] };
          edges.set(fact, { ...known, statedAt: [...known.statedAt, [one.by, at]] });
        }
        const inOrder = [...edges]
          .filter(([, { statedAt }]) => statedAt.length > 0)
          .map(([fact, each]) => ({ fact, ...each, from: each.start ?? each.statedAt.at(-1)?.[1] ?? 0 }))
          .toSorted((first, second) => first.from - second.from);
        const expected = inOrder.flatMap(({ fact, place: is }, position) => {
          const next = inOrder.slice(position + 1).find((later) => later.place !== is);
          return next === undefined ? [fact] : [];
        });
        const atEnd = { validAtMs: START_MS + 100 * HOUR_MS };
        expect(facts(index, '*', atEnd)?.toSorted()).toEqual(expected.toSorted());
      }
      index.close();
    }),
    { numRuns: rounds(25) },
  );
});

const answersOf = (index: GraphIndex, validAtMs: number, asOf?: { readonly sequence: number }) =>
  QUERIES.map((query) => ask(index, query, { validAtMs, ...(asOf && { asOf }) }));

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
