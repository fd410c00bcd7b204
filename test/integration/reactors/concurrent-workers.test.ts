/** Workers that handle the same event, or whose clock is wrong: its outcome is recorded once. */
import { describe, expect, it } from 'vitest';

import { StoreClock, type StoredEvent, textOf } from '#libs/platform/eventstore/index.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { TipCache } from '#libs/platform/streams/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { jobReactor, requestJob } from '#test/support/reactors/jobs.ts';

import { HOUR_MS, never, newCategory, useReactors } from './running-reactors.ts';

const stage = useReactors();
const { anHourEarlier, ends, eventsOf, start, typesOf } = stage;

describe('a worker whose clock is an hour ahead', () => {
  const aheadAnHour = () => {
    const store = anHourEarlier(() => true);
    return { ...stage.client, store, clock: new StoreClock(store) };
  };

  it('gives up no process before its deadline, and records the times of the event store', async () => {
    const category = newCategory();
    const stores = aheadAnHour();
    const { outcomes } = start(jobReactor({ category }), stores);
    await ends(category, await requestJob(stage.client.store, category, 0), 'JobDone.v1');
    await eventually(() => expect(Math.abs((stores.clock.nowMs ?? 0) - (Date.now() - HOUR_MS))).toBeLessThan(5_000));
    const id = await requestJob(stage.client.store, category, 1);
    await ends(category, id, 'JobStepped.v1', 'JobDone.v1');
    await eventually(() => expect(outcomes).toEqual(['handled', 'handled', 'handled']));
    const times = (await eventsOf(category, id)).map(({ metadata }) => Date.parse(textOf(metadata, 'at') ?? ''));
    expect(times.at(-1)).toBeLessThan(Date.now() - HOUR_MS / 2);
  });
});

describe('two workers on the same event', () => {
  async function requested(category: string): Promise<StoredEvent> {
    const [event] = await eventsOf(category, await requestJob(stage.client.store, category, 0));
    if (event === undefined) throw new Error('not stored');
    return event;
  }
  const attempt = { failures: 0, lastError: null, signal: new AbortController().signal };

  it('record its outcome once', async () => {
    const category = newCategory();
    const event = await requested(category);
    const gate = Promise.withResolvers<void>();
    let waiting = 0;
    const worker = (name: string) =>
      new Step(
        jobReactor({
          category,
          handle: async () => {
            if (++waiting === 2) gate.resolve();
            await gate.promise;
            return [{ type: 'JobDone.v1', data: { worker: name } }];
          },
        }),
        stage.client,
        event,
      );
    const results = await Promise.all([worker('one').attempt(attempt), worker('other').attempt(attempt)]);
    expect(results.map(({ kind }) => kind)).toEqual(['done', 'done']);
    expect(await typesOf(category, event.stream.slice(category.length + 1))).toEqual(['JobRequested.v1', 'JobDone.v1']);
  });

  it.for([
    ['at the next event', [0, 2], [1]],
    ['at an event that the other one has handled', [0, 1, 2], [1]],
    ['at an event before the last one that it has seen', [0, 1], [1, 2, 0]],
  ] as const)('take a process over from each other %s, as it is then', async ([, ofOne, ofOther]) => {
    const category = newCategory();
    const id = await requestJob(stage.client.store, category, 2);
    const handleAll = async (worker: string, tips: TipCache, revisions: readonly number[]): Promise<void> => {
      for (const revision of revisions) {
        const event = (await eventsOf(category, id))[revision];
        if (event === undefined) throw new Error('not stored');
        const step = new Step(jobReactor({ category, worker }), { ...stage.client, tips }, event);
        expect(await step.attempt(attempt)).toEqual({ kind: 'done', isGivenUp: false });
      }
    };
    const tips = new TipCache();
    await handleAll('one', tips, ofOne.slice(0, 1));
    await handleAll('other', new TipCache(), ofOther);
    await handleAll('one', tips, ofOne.slice(1));
    expect(await typesOf(category, id)).toEqual(['JobRequested.v1', 'JobStepped.v1', 'JobStepped.v1', 'JobDone.v1']);
    const workers = (await eventsOf(category, id)).map(({ data }) => (data as { readonly worker?: string }).worker);
    expect(workers.slice(0, 3)).toEqual([undefined, 'one', 'other']);
  });

  it('start an effect once that one of them has announced', async () => {
    const category = newCategory();
    const event = await requested(category);
    const gate = Promise.withResolvers<void>();
    let [waiting, effects] = [0, 0];
    const worker = (name: string) =>
      new Step(
        jobReactor({
          category,
          handle: async (_event, { state, recordIntent }) => {
            if (state.isChargeStarted) return [{ type: 'JobFailed.v1', data: { reason: 'interrupted', error: null } }];
            if (++waiting === 2) gate.resolve();
            await gate.promise;
            await recordIntent({ type: 'JobChargeStarted.v1', data: { worker: name } });
            effects += 1;
            return never();
          },
          limits: { stepTimeoutMs: 1_000 },
        }),
        stage.client,
        event,
      );
    const results = await Promise.all([worker('one').attempt(attempt), worker('other').attempt(attempt)]);
    expect(results).toMatchObject([{ kind: 'again' }, { kind: 'again' }]);
    expect(effects).toBe(1);
    // The next attempt reports it, and does not repeat it.
    expect(await worker('next').attempt(attempt)).toEqual({ kind: 'done', isGivenUp: false });
    expect(effects).toBe(1);
    const types = await typesOf(category, event.stream.slice(category.length + 1));
    expect(types).toEqual(['JobRequested.v1', 'JobChargeStarted.v1', 'JobFailed.v1']);
  });
});
