import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { accept, refuse, type Rejection } from '#libs/kernel/decider.ts';
import { type DomainEvent, NO_EVENTS } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';
import { composeProjections } from '#libs/platform/readmodel/compose-projections.ts';
import type { Projection } from '#libs/platform/readmodel/projection.ts';
import type { Lookup } from '#libs/platform/readmodel/read-model.ts';
import type { Tip } from '#libs/platform/streams/index.ts';

import type { CommandContext } from './command-context.ts';
import { type CommandRunner, runnerOfEvents, runnerOfPart } from './command-runner.ts';
import { type CommandResult, type Decide, decideBatch } from './decide-batch.ts';
import { Lookups } from './lookups.ts';

const nameCodec = defineEvents({ 'Renamed.v1': z.object({ name: z.string() }) });
const countCodec = defineEvents({ 'Counted.v1': z.object({ by: z.int() }) });
type Renamed = EventOf<typeof nameCodec>;
type Counted = EventOf<typeof countCodec>;

const THING = { category: 'thing', version: 1 };
const project = () => ({ operations: [], lists: [] });
const names: Projection<string, Renamed> = {
  ...THING,
  codec: nameCodec,
  fold: { initialState: '', evolve: (_state, { data }) => data.name },
  project,
};
const counts: Projection<number, Counted> = {
  ...THING,
  codec: countCodec,
  fold: { initialState: 0, evolve: (state, { data }) => state + data.by },
  project,
};
const things = composeProjections(THING, { names, counts });
type Whole = typeof things.fold.initialState;

/** Decides as `CommandHandler` does, on one entity in memory. */
class OneThing<State, E extends DomainEvent> implements CommandRunner<State, E> {
  readonly #projection: Projection<State, E>;
  readonly #found: string;
  tip: Tip<State>;

  constructor(projection: Projection<State, E>, found = '') {
    this.#projection = projection;
    this.#found = found;
    this.tip = { state: projection.fold.initialState, revision: NO_EVENTS, at: null };
  }

  handle<R extends Rejection>(
    id: string,
    context: CommandContext,
    decide: Decide<State, E, R>,
    lookups: readonly Lookup[] = [],
  ): Promise<CommandResult<State, E, R>> {
    return new Promise((resolve, reject) => {
      // As in the handler: the result comes from the caller's own `decide`.
      const waiting = { id, context, decide, lookups, resolve: resolve as never, reject };
      const found = new Lookups(
        lookups,
        lookups.map(() => this.#found),
      );
      const { after, answers } = decideBatch(this.#projection, this.tip, [waiting], found, ({ at }) => at);
      this.tip = after;
      for (const answer of answers) answer();
    });
  }
}

const context = (): CommandContext => ({
  commandId: newId(),
  organizationId: 'organization-1',
  actor: { type: 'user', id: 'user-1' },
  at: '2026-01-31T12:00:00.000Z',
});
const rename = (name: string) => accept({ type: 'Renamed.v1' as const, data: { name } });
const count = (by: number) => accept({ type: 'Counted.v1' as const, data: { by } });

describe('the runner of one feature of a stream', () => {
  it('decides on its own state, returns it, and shares the stream with the others', async () => {
    const thing = new OneThing<Whole, Renamed | Counted>(things);
    const ofNames = runnerOfPart<Whole, 'names', Renamed | Counted, Renamed>(thing, 'names');
    const ofCounts = runnerOfPart<Whole, 'counts', Renamed | Counted, Counted>(thing, 'counts');
    await ofNames.handle('thing-1', context(), () => rename('a'));
    await ofCounts.handle('thing-1', context(), (state) => count(state + 2));
    const renamed = await ofNames.handle('thing-1', context(), (state) => rename(`${state}b`));
    const counted = await ofCounts.handle('thing-1', context(), (state) => count(state + 3));
    expect(renamed).toMatchObject({ ok: true, state: 'ab', revision: 2, events: [{ data: { name: 'ab' } }] });
    expect(counted).toMatchObject({ ok: true, state: 7, revision: 3, events: [{ type: 'Counted.v1', revision: 3 }] });
    expect(thing.tip).toEqual({ state: { names: 'ab', counts: 7 }, revision: 3, at: context().at });
  });

  it('passes look-ups and the next revision to the decision, and returns its rejection', async () => {
    const thing = new OneThing<Whole, Renamed | Counted>(things, 'known');
    const ofNames = runnerOfPart<Whole, 'names', Renamed | Counted, Renamed>(thing, 'names');
    const known = { key: 'names', field: 'a' };
    const found = await ofNames.handle('thing-1', context(), (_state, at) => rename(`${at.found(known)} ${at.next}`), [
      known,
    ]);
    expect(found).toMatchObject({ ok: true, state: 'known 0' });
    const refused = await ofNames.handle('thing-1', context(), () => refuse({ reason: 'no' }));
    expect(refused).toEqual({ ok: false, rejection: { reason: 'no' } });
    expect(thing.tip.revision).toBe(0);
  });

  it('fails if its decision throws, and appends nothing', async () => {
    const thing = new OneThing<Whole, Renamed | Counted>(things);
    const ofCounts = runnerOfPart<Whole, 'counts', Renamed | Counted, Counted>(thing, 'counts');
    const failing = ofCounts.handle('thing-1', context(), () => {
      throw new TypeError('wrong');
    });
    await expect(failing).rejects.toThrow('wrong');
    expect(thing.tip.revision).toBe(NO_EVENTS);
  });
});

describe('the runner of one feature that decides on the whole state', () => {
  it('returns its own events', async () => {
    const thing = new OneThing<Whole, Renamed | Counted>(things);
    const ofNames = runnerOfEvents<Whole, Renamed | Counted, Renamed>(thing);
    await thing.handle('thing-1', context(), () => count(4));
    const renamed = await ofNames.handle('thing-1', context(), (state) => rename(`${state.counts} times`));
    expect(renamed).toMatchObject({ ok: true, state: { names: '4 times', counts: 4 }, revision: 1 });
  });
});
