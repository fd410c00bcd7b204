/** The index of one graph answers as of a time or an event, whatever was written later and in which order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { GraphEvent } from '#libs/features/knowledge/graph.ts';
import { GraphIndex } from '#libs/features/knowledge/search/graph-index.ts';
import { rounds } from '#test/support/rounds.ts';

import { edge, learned, node } from './graph-facts.ts';
import { ask, facts, HOUR_MS, nodeNames, numbered, START_MS, useIndexFolder } from './index-questions.ts';

const { indexOf, newPath } = useIndexFolder();

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
