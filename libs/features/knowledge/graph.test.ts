import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { decideUpdate, type Graph, graphCodec, type GraphEvent, graphFold } from './graph.ts';
import samples from './graph.events.samples.json' with { type: 'json' };

describeStoredEvents('graphs', graphCodec, samples);

const created: GraphEvent = {
  type: 'GraphCreated.v1',
  data: { id: 'graph-1', name: 'Mathematicians', description: null },
};
const learned = { type: 'FactsLearned.v1', data: samples['FactsLearned.v1'] } satisfies GraphEvent;
const deleted: GraphEvent = { type: 'GraphDeleted.v1', data: {} };

function given(...events: GraphEvent[]): Graph {
  const state = stateAfter(graphFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}

describe('a graph', () => {
  it('changes only in what is given and is new', () => {
    expect(decideUpdate(given(created), { name: 'Mathematicians', description: null })).toEqual({
      ok: true,
      events: [],
    });
    expect(decideUpdate(given(created), {})).toEqual({ ok: true, events: [] });
    const description = 'People';
    expect(decideUpdate(given(created), { name: 'Scientists', description })).toEqual({
      ok: true,
      events: [
        { type: 'GraphRenamed.v1', data: { name: 'Scientists' } },
        { type: 'GraphDescribed.v1', data: { description } },
      ],
    });
  });

  it('has a state that is as small and a revision that is as high after any facts', () => {
    const facts = fc.constantFrom<GraphEvent>(
      learned,
      { type: 'FactsWithdrawn.v1', data: samples['FactsWithdrawn.v1'] },
      { type: 'EdgeEnded.v1', data: samples['EdgeEnded.v1'] },
    );
    const before = given(created);
    fc.assert(
      fc.property(fc.array(facts), (events) => {
        expect(given(created, ...events)).toEqual({ ...before, changedRevision: events.length });
      }),
    );
  });

  it('is what its last changes say, and is deleted permanently', () => {
    const change = fc.oneof(
      fc.record({ type: fc.constant('GraphRenamed.v1' as const), data: fc.record({ name: fc.string() }) }),
      fc.record({
        type: fc.constant('GraphDescribed.v1' as const),
        data: fc.record({ description: fc.option(fc.string()) }),
      }),
      fc.constantFrom<GraphEvent>(learned, deleted),
    );
    fc.assert(
      fc.property(fc.array(change), (events: readonly GraphEvent[]) => {
        const name = events.findLast((event) => event.type === 'GraphRenamed.v1')?.data.name ?? 'Mathematicians';
        const description = events.findLast((event) => event.type === 'GraphDescribed.v1')?.data.description ?? null;
        const isDeleted = events.includes(deleted);
        const graph = given(created, ...events);
        expect({ ...graph, deletedAt: graph.deletedAt !== null }).toMatchObject({
          name,
          description,
          deletedAt: isDeleted,
        });
      }),
    );
  });
});
