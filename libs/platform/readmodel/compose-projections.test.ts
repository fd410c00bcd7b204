import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { foldEvents } from '#libs/kernel/decider.ts';
import { sequenceOf, streamRevision, type DomainEvent, type StreamEvent } from '#libs/kernel/event.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

import { composeProjections } from './compose-projections.ts';
import { projectRun, type Projection } from './projection.ts';
import { entityKeys } from './read-model.keys.ts';

const THING = { category: 'thing', version: 1 };
const nameCodec = defineEvents({ 'Renamed.v1': z.object({ name: z.string() }) });
const countCodec = defineEvents({ 'Counted.v1': z.object({ by: z.int() }) });
type Renamed = EventOf<typeof nameCodec>;
type Counted = EventOf<typeof countCodec>;

/** Says in a field what it was given: its states, and its events. */
function seen<State, E extends DomainEvent>(name: string): Projection<State, E>['project'] {
  return ({ before, after, events }, keys) => ({
    operations: [
      {
        command: 'HSET',
        key: keys.document,
        args: [name, JSON.stringify([before, after, events.map(({ revision }) => revision)])],
      },
    ],
    lists: [],
  });
}

function* framesOf<E extends DomainEvent>({ events }: { readonly events: readonly StreamEvent<E>[] }) {
  for (const { type, revision } of events) yield { sequence: sequenceOf(revision), flags: 0, json: type };
}

const names: Projection<string, Renamed> = {
  ...THING,
  codec: nameCodec,
  fold: { initialState: '', evolve: (_state, { data }) => data.name },
  project: seen('names'),
  frames: framesOf,
};
const counts: Projection<number, Counted> = {
  ...THING,
  codec: countCodec,
  fold: { initialState: 0, evolve: (state, { data }) => state + data.by },
  project: seen('counts'),
  frames: framesOf,
};
const composed = composeProjections(THING, { names, counts });

const metadata = {
  at: '2026-01-31T12:00:00.000Z',
  organizationId: 'organization-1',
  actor: { type: 'user' as const, id: 'user-1' },
  commandId: 'command-1',
  $correlationId: 'command-1',
  $causationId: 'command-1',
};
const events = (
  [
    { type: 'Counted.v1', data: { by: 2 } },
    { type: 'Renamed.v1', data: { name: 'a' } },
    { type: 'Counted.v1', data: { by: 3 } },
    { type: 'Counted.v1', data: { by: 0 } },
    { type: 'Renamed.v1', data: { name: 'b' } },
  ] as const
).map((event, at) => ({ ...event, id: `event-${at}`, revision: streamRevision(at), metadata }));

const runOf = (from: number) => {
  const before = foldEvents(composed.fold, composed.fold.initialState, events.slice(0, from));
  const after = foldEvents(composed.fold, before, events.slice(from));
  return { organizationId: 'organization-1', id: 'thing-1', before, after, events: events.slice(from) };
};

describe('a projection of several features', () => {
  it('folds each event into the state of its own feature', () => {
    expect(composed.fold.initialState).toEqual({ names: '', counts: 0 });
    expect(foldEvents(composed.fold, composed.fold.initialState, events)).toEqual({ names: 'b', counts: 5 });
  });

  it('returns the same state object for an event that changes nothing, and for a foreign one', () => {
    const state = { names: 'a', counts: 5 };
    const [, , , nothing] = events;
    if (nothing === undefined) throw new TypeError('there is such an event');
    expect(composed.fold.evolve(state, nothing)).toBe(state);
    expect(composed.fold.evolve(state, { ...nothing, type: 'Unknown.v1' as never })).toBe(state);
    expect(composed.fold.evolve(state, { ...nothing, data: { by: 1 } } as never)).not.toBe(state);
  });

  it('shows each feature its own states and its own events, and writes what all of them write', () => {
    const keys = entityKeys(THING, 'organization-1', 'thing-1');
    const { operations, lists } = composed.project(runOf(1), keys);
    expect(operations.map(({ args }) => args)).toEqual([
      ['names', JSON.stringify(['', 'b', [1, 4]])],
      ['counts', JSON.stringify([2, 5, [2, 3]])],
    ]);
    expect(lists).toEqual([]);
  });

  it('writes nothing for a feature without events in the run, unless the run repairs', () => {
    const keys = entityKeys(composed, 'organization-1', 'thing-1');
    const counted = { ...runOf(2), events: events.slice(2, 4) };
    expect(composed.project(counted, keys).operations.map(({ args: [name] }) => name)).toEqual(['counts']);
    const repaired = composed.project({ ...counted, isRepair: true }, keys);
    expect(repaired.operations.map(({ args: [name] }) => name)).toEqual(['names', 'counts']);
  });

  it('stores the states of its features apart, all of them at first and then those that change', () => {
    const keys = entityKeys(composed, 'organization-1', 'thing-1');
    const stored = (run: ReturnType<typeof runOf>) =>
      projectRun(composed, run, keys).operations.flatMap(({ command, key, args }) =>
        command === 'SET' ? [[key.slice(keys.state.length), ...args]] : [],
      );
    const first = { ...runOf(0), after: foldEvents(composed.fold, composed.fold.initialState, events.slice(0, 1)) };
    expect(stored(first)).toEqual([
      [':names', '""'],
      [':counts', '2'],
    ]);
    expect(stored(runOf(4))).toEqual([[':names', '"b"']]);
  });

  it('yields frames in the order of the stream', () => {
    const frames = [...(composed.frames?.(runOf(1)) ?? [])];
    expect(frames.map(({ sequence, json }) => [sequence, json])).toEqual([
      [2, 'Renamed.v1'],
      [3, 'Counted.v1'],
      [4, 'Counted.v1'],
      [5, 'Renamed.v1'],
    ]);
  });

  it('has no frames if one of the features has none, and fails if a frame is missing', () => {
    const { frames: _frames, ...silent } = counts;
    expect(composeProjections(THING, { names, silent }).frames).toBeUndefined();
    const forgetful = { ...counts, frames: () => [] };
    const frames = composeProjections(THING, { names, forgetful }).frames;
    expect(() => [
      ...(frames?.({ ...runOf(1), before: { names: '', forgetful: 2 }, after: { names: 'b', forgetful: 5 } }) ?? []),
    ]).toThrow('Counted.v1 at 2 has no frame');
  });

  it('is rejected if two features declare the same event', () => {
    expect(() => composeProjections(THING, { names, others: names })).toThrow('declare Renamed.v1');
  });
});
