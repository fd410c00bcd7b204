import { describe, expect, it } from 'vitest';
import fc from 'fast-check';

import { appendsOf, type EdgeToLearn, FactIds, type FactsToLearn, type NodeToLearn, normalized } from './facts.ts';
import { type FactsLearned, graphCodec } from './graph.ts';

const GRAPH = '0198c0de-0000-7000-8000-000000000001';
const ids = new FactIds(GRAPH);
const source = { documentId: 'document-1', revision: 1, name: 'Ada', url: null };
const nowhere = { passage: null, offset: null };
const node = (name: string, more: Partial<NodeToLearn> = {}): NodeToLearn => ({
  ...nowhere,
  key: name,
  name,
  summary: null,
  labels: [],
  ...more,
});
const edge = (from: string, to: string, more: Partial<EdgeToLearn> = {}): EdgeToLearn => ({
  ...nowhere,
  name: 'knows',
  fact: `${from} knows ${to}`,
  source: from,
  target: to,
  validAt: null,
  invalidAt: null,
  isSingleValued: false,
  ...more,
});
const factsOf = (facts: Partial<FactsToLearn>): FactsToLearn => ({
  source,
  passages: [],
  nodes: [],
  edges: [],
  model: null,
  ...facts,
});

function learnedOf(facts: readonly FactsToLearn[]): FactsLearned[][] {
  return appendsOf(GRAPH, facts).map((events) =>
    events.map((event) => {
      if (event.type !== 'FactsLearned.v1') throw new Error(event.type);
      return graphCodec.encode(event);
    }),
  );
}

describe('ids of facts', () => {
  it('are the same for names that differ in case, width or white space only', () => {
    expect(normalized(' Ada \n LOVELACE')).toBe(normalized('ada lovelace'));
    expect(normalized('ＡＤＡ')).toBe(normalized('Ada'));
    expect(ids.node('link:https://example.org/A')).not.toBe(ids.node('link:https://example.org/a'));
    expect(ids.node('ada')).not.toBe(new FactIds('graph-2').node('ada'));
  });

  it('of edges differ by ends, relation, statement and start, and by nothing else', () => {
    const one = edge('Ada', 'Acme', { name: 'Works for' });
    const same = [{ name: 'works  for' }, { fact: 'ADA knows Acme' }, { invalidAt: '2020-01-01T00:00:00.000Z' }];
    const others = [
      { name: null },
      { name: 'left' },
      { fact: 'Ada left Acme' },
      { target: 'other' },
      { validAt: '2020-01-01T00:00:00.000Z' },
    ];
    for (const change of same) expect(ids.edge({ ...one, ...change })).toBe(ids.edge(one));
    const all = [one, ...others.map((change) => ({ ...one, ...change }))].map((each) => ids.edge(each));
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('events of facts', () => {
  it('refer to nodes by id, and contain the passages that they use', () => {
    const facts = factsOf({
      passages: ['unused', 'Ada knows Bob.'],
      nodes: [node('Ada', { passage: 1, offset: 0 }), node('Bob')],
      edges: [edge('Ada', 'Bob', { passage: 1, offset: 4 })],
    });
    const [ada, bob] = [ids.node('Ada'), ids.node('Bob')];
    expect(learnedOf([facts])).toMatchObject([
      [
        {
          source,
          passages: ['Ada knows Bob.'],
          nodes: [
            { id: bob, passage: null },
            { id: ada, name: 'Ada', passage: 0, offset: 0 },
          ],
          edges: [{ source: ada, target: bob, passage: 0, offset: 4 }],
        },
      ],
    ]);
  });

  it('hold all facts with their passages, within the limits, however large these are', () => {
    const passages = Array.from({ length: 9 }, (_, index) => `${index}é`.repeat(1 + index * 1_000));
    /** Sizes of facts, and their passages; 9 stands for none. */
    const sizes = fc.array(fc.tuple(fc.nat({ max: 90_000 }), fc.nat({ max: 9 })), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(sizes, (entries) => {
        const textAt = (index: number) => 'ü'.repeat((entries[index]?.[0] ?? 0) / 2);
        const placeAt = (index: number) => ({ passage: entries[index]?.[1] === 9 ? null : (entries[index]?.[1] ?? 0) });
        const nodes = entries.map((_, index) => node(`${index}`, { summary: textAt(index), ...placeAt(index) }));
        const edges = entries.map((_, index) => edge(`${index}`, 'x', { fact: `${index}`, ...placeAt(index) }));
        const appends = learnedOf([factsOf({ passages, nodes, edges })]);
        const events = appends.flat();
        const placed = events.flatMap((event) =>
          [...event.nodes, ...event.edges].map((fact) => [
            'fact' in fact ? `edge ${fact.fact}` : `${fact.name} ${fact.summary}`,
            fact.passage === null ? null : event.passages[fact.passage],
          ]),
        );
        const expected = entries.flatMap(([, passage], index) => {
          const text = passage === 9 ? null : passages[passage];
          return [
            [`${index} ${textAt(index)}`, text],
            [`edge ${index}`, text],
          ] as const;
        });
        expect(new Map(placed as [string, string][])).toEqual(new Map(expected as unknown as [string, string][]));
        expect(placed).toHaveLength(expected.length);
        // A passage is stored again only in the next event.
        const used = new Set(expected.map(([, text]) => text).filter((text) => text !== null));
        expect(events.flatMap((event) => event.passages).length).toBeLessThan(used.size + events.length);
        for (const one of appends) {
          const bytes = one.map((event) => Buffer.byteLength(JSON.stringify(event)));
          for (const size of bytes) expect(size).toBeLessThan(256 * 1024);
          expect(bytes.reduce((sum, size) => sum + size)).toBeLessThan(720_000);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('are none for no facts', () => {
    expect(appendsOf(GRAPH, [factsOf({})])).toEqual([]);
  });
});
