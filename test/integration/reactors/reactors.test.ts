/** The guarantees of a reactor, on one event store; for failing workers see `test/campaigns/reactors.test.ts`. */
import { describe, expect, it } from 'vitest';

import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { derivedId, newId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventStore } from '#libs/platform/eventstore/index.ts';
import { within } from '#libs/platform/lifecycle/index.ts';
import { GROUP_PREFIX, groupNameOf, reactor } from '#libs/platform/reactors/index.ts';
import { TipCache } from '#libs/platform/streams/index.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';
import {
  jobEvents,
  jobReactor,
  nextOf,
  requestJob,
  type JobEvent,
  type JobState,
} from '#test/support/reactors/jobs.ts';

import { type JobProcess, never, newCategory, useReactors } from './running-reactors.ts';

const stage = useReactors();
const { anHourEarlier, clockIsMeasured, ends, eventsOf, start, typesOf } = stage;

describe('organizations', () => {
  it('do not wait for each other, whatever the steps of one wait for, and however many it has', async () => {
    const category = newCategory();
    const order: string[] = [];
    const handle = (_event: unknown, process: JobProcess) => {
      order.push(process.organizationId);
      return process.organizationId === 'a' ? never() : [nextOf(process, 'worker')];
    };
    const declared = jobReactor({ category, handle, limits: { concurrency: 4, stepTimeoutMs: 600_000 } });
    for (let n = 0; n < 300; n += 1) await requestJob(stage.client.store, category, 0, { organizationId: 'a' });
    const others = [];
    for (const organizationId of ['b', 'c']) {
      others.push(await requestJob(stage.client.store, category, 0, { organizationId }));
    }
    const { runner } = start(declared);
    for (const id of others) await ends(category, id, 'JobDone.v1');
    expect(order.toSorted()).toEqual(['a', 'a', 'b', 'c']);
    expect(runner.progress).toMatchObject({ running: 2, held: 298 });
  });

  it('take turns where one has more than it may hold slots of', async () => {
    const category = newCategory();
    const order: string[] = [];
    const gate = Promise.withResolvers<void>();
    const handle = async (_event: unknown, process: JobProcess) => {
      await gate.promise;
      order.push(process.organizationId);
      return [nextOf(process, 'worker')];
    };
    const { runner } = start(jobReactor({ category, handle, limits: { concurrency: 2 } }));
    for (const organizationId of ['a', 'a', 'a', 'a', 'b', 'b']) {
      await requestJob(stage.client.store, category, 0, { organizationId });
    }
    await eventually(() => expect(runner.progress).toMatchObject({ running: 2, held: 4 }));
    gate.resolve();
    await eventually(() => expect(order).toHaveLength(6));
    expect(order.slice(0, 4).toSorted()).toEqual(['a', 'a', 'b', 'b']);
  });
});

describe('a reactor', () => {
  it('moves a process on from event to event until it ends', async () => {
    const category = newCategory();
    const declared = jobReactor({ category });
    const id = await requestJob(stage.client.store, category, 2);
    const { outcomes } = start(declared);
    await ends(category, id, 'JobStepped.v1', 'JobStepped.v1', 'JobDone.v1');
    await eventually(() => expect(outcomes).toEqual(['handled', 'handled', 'handled']));
    // The last answer may be under way.
    await eventually(async () => {
      const [group] = await stage.client.groups.list(groupNameOf(declared));
      expect(group).toMatchObject({ members: 1, inFlight: 0, waiting: 0, parked: 0, lag: 0 });
    });
  });

  it('repeats a step that fails, with the same idempotency key, and records it once', async () => {
    const category = newCategory();
    const keys = new Set<string>();
    const handle = (_event: unknown, process: JobProcess) => {
      keys.add(process.idempotencyKey('charge'));
      if (process.attempt < 3) throw new Error('not yet');
      return [nextOf(process, 'worker')];
    };
    const { outcomes } = start(jobReactor({ category, handle }));
    const id = await requestJob(stage.client.store, category, 0);
    await ends(category, id, 'JobDone.v1');
    expect(keys.size).toBe(1);
    await eventually(() => expect(outcomes).toEqual(['failed', 'failed', 'handled']));
  });

  it('ends a process whose step fails too often, with the last error', async () => {
    const category = newCategory();
    const handle = (_event: unknown, { attempt }: JobProcess) => {
      throw new Error(`attempt ${attempt}`);
    };
    const { outcomes } = start(jobReactor({ category, handle, limits: { maxAttempts: 3 } }));
    const id = await requestJob(stage.client.store, category, 0);
    await ends(category, id, 'JobFailed.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toEqual({ reason: 'attempts', error: 'attempt 3' });
    await eventually(() => expect(outcomes).toEqual(['failed', 'failed', 'failed', 'given_up']));
  });

  it('does not count an unavailable store as a failure', async () => {
    const category = newCategory();
    let calls = 0;
    const handle = (_event: unknown, process: JobProcess) => {
      calls += 1;
      if (calls < 5) throw storeUnavailable('Redis');
      return [nextOf(process, `attempt ${process.attempt}`)];
    };
    start(jobReactor({ category, handle, limits: { maxAttempts: 1 } }));
    const id = await requestJob(stage.client.store, category, 0);
    await ends(category, id, 'JobDone.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toEqual({ worker: 'attempt 1' });
  });

  it('ends a process at its deadline while its handler waits', async () => {
    const category = newCategory();
    const { outcomes } = start(jobReactor({ category, handle: () => [], limits: { deadlineMs: 1_500 } }));
    const id = await requestJob(stage.client.store, category, 0);
    await ends(category, id, 'JobFailed.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toMatchObject({ reason: 'deadline' });
    await eventually(() => expect(outcomes.at(-1)).toBe('given_up'));
    expect(new Set(outcomes)).toEqual(new Set(['waiting', 'given_up']));
  });

  it('ends a process whose deadline has passed while no worker ran, without handling it', async () => {
    const category = newCategory();
    await clockIsMeasured();
    const id = await requestJob(stage.client.store, category, 0);
    const [{ createdMs } = { createdMs: 0 }] = await eventsOf(category, id);
    await eventually(() => expect(Date.now()).toBeGreaterThan(createdMs + 50));
    start(jobReactor({ category, handle: () => expect.unreachable(), limits: { deadlineMs: 50 } }));
    await ends(category, id, 'JobFailed.v1');
  });

  it('counts the deadline of a process from where that says it has started again', async () => {
    const category = newCategory();
    await clockIsMeasured();
    const id = await requestJob(stage.client.store, category, 0);
    const { stop } = start(jobReactor({ category }));
    await ends(category, id, 'JobDone.v1');
    await stop();
    await requestJob(stage.client.store, category, 0, { id, expected: streamRevision(1) });
    const store = anHourEarlier(({ revision }) => revision < 2);
    const startRevision = ({ requestRevision }: JobState) => requestRevision;
    start(jobReactor({ category, startRevision }), { ...stage.client, store });
    await ends(category, id, 'JobDone.v1', 'JobRequested.v1', 'JobDone.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toEqual({ worker: 'worker' });
  });

  it('ends a process at its deadline when it has an outcome without a next step', async () => {
    const category = newCategory();
    let calls = 0;
    const handle = (_event: unknown, process: JobProcess) => {
      calls += 1;
      return [nextOf(process, 'worker')];
    };
    // Its own events are not handled. The deadline leaves a busy machine time for the first attempt.
    start(jobReactor({ category, on: ['JobRequested.v1'], handle, limits: { deadlineMs: 3_000 } }));
    const id = await requestJob(stage.client.store, category, 1);
    await ends(category, id, 'JobStepped.v1', 'JobFailed.v1');
    expect(calls).toBe(1);
  });

  it('drops the result of a step after its deadline', async () => {
    const category = newCategory();
    const late = Promise.withResolvers<void>();
    const handle = async (_event: unknown, process: JobProcess) => {
      const next = nextOf(process, `attempt ${process.attempt}`);
      if (process.attempt === 1) await late.promise;
      return [next];
    };
    const { outcomes } = start(jobReactor({ category, handle, limits: { stepTimeoutMs: 100 } }));
    const id = await requestJob(stage.client.store, category, 0);
    await ends(category, id, 'JobDone.v1');
    late.resolve();
    // An event without an answer for 200 ms is delivered again: on a busy machine, there is a further 'handled'.
    await eventually(() => expect(outcomes.slice(0, 2)).toEqual(['failed', 'handled']));
    expect((await eventsOf(category, id)).at(-1)?.data).toEqual({ worker: 'attempt 2' });
  });

  it('starts processes for events of other streams, and none where nothing is to be done', async () => {
    const [category, requests] = [newCategory(), newCategory()];
    const { process, isEnded, giveUp } = jobReactor({ category });
    const { outcomes } = start(
      reactor<JobState, JobEvent>({
        name: category,
        on: ['JobRequested.v1'],
        process,
        isEnded,
        giveUp,
        processOf: (event, stream) => derivedId(event.id, stream),
        handle: (event, { state }) => {
          expect(state.outcome).toBeNull();
          if (event.type !== 'JobRequested.v1' || event.data.steps === 0) return [];
          return [{ type: 'JobDone.v1', data: { worker: 'other' } }];
        },
      }),
    );
    const [wanted, ignored] = [
      await requestJob(stage.client.store, requests, 1),
      await requestJob(stage.client.store, requests, 0),
    ];
    const processOf = async (id: string): Promise<string> => {
      const [request] = await eventsOf(requests, id);
      return derivedId(request?.id ?? '', `${requests}-${id}`);
    };
    await eventually(async () => expect(await typesOf(category, await processOf(wanted))).toEqual(['JobDone.v1']));
    await eventually(async () => {
      const own = (await stage.client.groups.list(`${GROUP_PREFIX}${category}-`))[0];
      expect(own).toMatchObject({ inFlight: 0, waiting: 0 });
      expect(outcomes.length).toBeGreaterThanOrEqual(2);
    });
    expect(await typesOf(category, await processOf(ignored))).toEqual([]);
  });

  it('starts processes for old events of other streams, and gives up none that does not exist', async () => {
    const [category, requests] = [newCategory(), newCategory()];
    const ids = [await requestJob(stage.client.store, requests, 1), await requestJob(stage.client.store, requests, 0)];
    const ignored = await requestJob(stage.client.store, requests, 0);
    const [{ createdMs } = { createdMs: 0 }] = await eventsOf(requests, ignored);
    await eventually(() => expect(Date.now()).toBeGreaterThan(createdMs + 100));
    const [attempts, reasons]: [string[], string[]] = [[], []];
    start({
      ...jobReactor({ category, on: ['JobRequested.v1'], limits: { deadlineMs: 100, maxAttempts: 2 } }),
      processOf: (_event: unknown, stream: string) => stream.slice(-newId().length),
      handle: (_event: unknown, { id }: JobProcess) => {
        attempts.push(id);
        if (id === ids[1]) throw new Error('never');
        return id === ids[0] ? [{ type: 'JobDone.v1', data: { worker: 'late' } }] : [];
      },
      giveUp: (_state: unknown, { reason }: { readonly reason: string }) => {
        reasons.push(reason);
        return [];
      },
    });
    await eventually(() => expect(attempts).toContain(ignored));
    // Its age did not keep it from being tried. On a busy machine, the deadline ends it before the second attempt.
    await eventually(() => expect(reasons).toHaveLength(1));
    expect(attempts).toContain(ids[1]);
    await eventually(async () => expect(await typesOf(category, ids[0] ?? '')).toEqual(['JobDone.v1']));
    for (const id of [ids[1] ?? '', ignored]) expect(await typesOf(category, id)).toEqual([]);
  });

  it('passes over events that a later one of the process has replaced', async () => {
    const category = newCategory();
    const id = await requestJob(stage.client.store, category, 0);
    await requestJob(stage.client.store, category, 0, { id, expected: streamRevision(0) });
    const handled: number[] = [];
    const { outcomes } = start(
      jobReactor({
        category,
        handle: ({ revision }, process) => {
          handled.push(revision);
          return [nextOf(process, 'worker')];
        },
      }),
    );
    await ends(category, id, 'JobRequested.v1', 'JobDone.v1');
    await eventually(() => expect(outcomes).toEqual(['handled', 'handled']));
    expect(handled).toEqual([1]);
  });

  it('reads each event of a process once, and what it has appended not at all where the store tells that', async () => {
    const category = newCategory();
    const store = new CountingStore(stage.client.store);
    const { outcomes } = start(jobReactor({ category }), { ...stage.client, store });
    const id = await requestJob(stage.client.store, category, 8);
    await ends(category, id, ...Array.from({ length: 8 }, () => 'JobStepped.v1'), 'JobDone.v1');
    await eventually(() => expect(outcomes).toHaveLength(9));
    expect(store.eventsRead).toBe(stage.eventStore.local === undefined ? 10 : 1);
  });

  it('has the state after an event of another reactor as that has left it, and reads it where that runs elsewhere', async () => {
    const category = newCategory();
    const jobs = jobReactor({ category });
    const ended: JobState[] = [];
    const after = reactor<null, never, JobEvent>({
      name: `${category}after`,
      on: ['JobDone.v1'],
      triggers: jobEvents,
      processOf: (event) => event.id,
      // The log holds jobs of other tests.
      isIrrelevant: ({ stream }) => !stream.startsWith(category),
      process: { category: 'after', codec: defineEvents({}), fold: { initialState: null, evolve: () => null } },
      isEnded: () => false,
      handle: async (_event, { stateAfterEvent }) => {
        ended.push(await stateAfterEvent(jobs.process));
        return [];
      },
      giveUp: () => [],
    });
    const done = { stepped: 2, outcome: 'done' };
    const store = new CountingStore(stage.client.store);
    const stores = { ...stage.client, store, tips: new TipCache() };
    start(jobs, stores);
    const { stop } = start(after, stores);
    await requestJob(stage.client.store, category, 2);
    await eventually(() => expect(ended).toMatchObject([done]));
    expect(store.eventsRead).toBe(stage.eventStore.local === undefined ? 4 : 1);
    await stop();
    // Another worker.
    const other = new CountingStore(stage.client.store);
    start(after, { ...stage.client, store: other, tips: new TipCache() });
    await requestJob(stage.client.store, category, 2);
    await eventually(() => expect(ended).toMatchObject([done, done]));
    expect(other.eventsRead).toBe(4);
  });

  it('records nothing of a step that begins before it has seen the end of its process', async () => {
    const category = newCategory();
    const others = { type: 'JobFailed.v1', data: { reason: 'cancelled', error: null } } as const;
    class OvertakenStore extends CountingStore {
      override async append(...[stream, expected, events]: Parameters<EventStore['append']>) {
        const result = await super.append(stream, expected, events);
        const isStep = result.kind === 'appended' && events.some(({ type }) => type === 'JobStepped.v1');
        if (isStep)
          await stage.client.store.append(stream, streamRevision(expected + 1), [logEvent(others.data, others.type)]);
        return result;
      }
    }
    const store = new OvertakenStore(stage.client.store);
    const { outcomes, runner } = start(jobReactor({ category }), { ...stage.client, store });
    const id = await requestJob(stage.client.store, category, 3);
    await eventually(async () => expect(await typesOf(category, id)).toContain(others.type));
    await eventually(() => expect(runner.progress).toMatchObject({ running: 0, held: 0 }));
    expect(await typesOf(category, id)).toEqual(['JobRequested.v1', 'JobStepped.v1', others.type]);
    expect(outcomes.filter((outcome) => outcome === 'handled')).toHaveLength(2);
  });

  it('waits before the first attempt at an event', async () => {
    const category = newCategory();
    const never = new Promise<never>(() => undefined);
    const { runner } = start({ ...jobReactor({ category, handle: () => never }), delayMs: () => 3_600_000 });
    await requestJob(stage.client.store, category, 0);
    await eventually(() => expect(runner.progress).toMatchObject({ held: 1, running: 0 }));
  });

  it('does not read processes that are known to have ended', async () => {
    const category = newCategory();
    const store = new CountingStore(stage.client.store);
    const { outcomes } = start({ ...jobReactor({ category }), hasEnded: () => true }, { ...stage.client, store });
    const id = await requestJob(stage.client.store, category, 0);
    await eventually(() => expect(outcomes).toEqual(['handled']));
    expect(store.reads).toBe(0);
    expect(await typesOf(category, id)).toEqual(['JobRequested.v1']);
  });

  it('handles events of two streams that have the same id', async () => {
    const category = newCategory();
    const go = Promise.withResolvers<void>();
    const handle = async (_event: unknown, process: JobProcess) => {
      await go.promise;
      return [nextOf(process, 'worker')];
    };
    const event = { ...logEvent({ steps: 0 }, 'JobRequested.v1'), id: newId() };
    const ids = [newId(), newId()];
    for (const id of ids) await stage.client.store.append(`${category}-${id}`, NO_EVENTS, [event]);
    const { runner } = start(jobReactor({ category, handle }));
    await eventually(() => expect(runner.progress.running).toBe(2));
    go.resolve();
    for (const id of ids) await ends(category, id, 'JobDone.v1');
  });

  it('handles a bounded number of events at once, and one of a process', async () => {
    const category = newCategory();
    let [active, most, conflicts] = [0, 0, 0];
    const processes = new Set<string>();
    const full = Promise.withResolvers<void>();
    const handle = async (_event: unknown, process: JobProcess) => {
      if (processes.has(process.id)) conflicts += 1;
      processes.add(process.id);
      most = Math.max(most, ++active);
      if (active === 3) full.resolve();
      await full.promise;
      await new Promise(setImmediate);
      active -= 1;
      processes.delete(process.id);
      return [nextOf(process, 'worker')];
    };
    const ids: string[] = [];
    // Two events of each process are there when the worker begins, one after the other.
    for (let n = 0; n < 9; n++) {
      const id = await requestJob(stage.client.store, category, 2);
      const stepped = logEvent({ step: 0, worker: 'test', effect: newId() }, 'JobStepped.v1');
      await stage.client.store.append(`${category}-${id}`, streamRevision(0), [stepped]);
      ids.push(id);
    }
    start(jobReactor({ category, handle, limits: { concurrency: 3, perOrganization: 3 } }));
    for (const id of ids) await ends(category, id, 'JobStepped.v1', 'JobStepped.v1', 'JobDone.v1');
    expect({ most, conflicts }).toEqual({ most: 3, conflicts: 0 });
  });

  it('hands unfinished events to another worker when it stops', async () => {
    const category = newCategory();
    const begun = Promise.withResolvers<void>();
    const handle = () => {
      begun.resolve();
      throw new Error('always');
    };
    const limits = { pauseMs: { first: 60_000, longest: 60_000 } };
    const first = start(jobReactor({ category, handle, limits }));
    const id = await requestJob(stage.client.store, category, 0);
    await begun.promise;
    await eventually(() => expect(first.runner.progress).toMatchObject({ isJoined: true, running: 0, held: 1 }));
    await first.stop();
    start(jobReactor({ category, worker: 'second', limits }));
    await ends(category, id, 'JobDone.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toEqual({ worker: 'second' });
  });

  it('waits for steps in progress for half of the time that it may take to stop', async () => {
    const category = newCategory();
    const begun = Promise.withResolvers<void>();
    const handle = () => {
      begun.resolve();
      return never();
    };
    const { runner, stop } = start(jobReactor({ category, handle }), { ...stage.client, stopTimeoutMs: 1_000 });
    await requestJob(stage.client.store, category, 0);
    await begun.promise;
    await within(4_000, stop(), () => new Error('the worker does not stop'));
    expect(runner.progress).toMatchObject({ isJoined: false, running: 0 });
  });

  it('continues after a restart of the event store, with the steps in progress', async () => {
    const category = newCategory();
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let calls = 0;
    const handle = async (_event: unknown, process: JobProcess) => {
      calls += 1;
      begun.resolve();
      await go.promise;
      return [nextOf(process, 'worker')];
    };
    const { runner } = start(jobReactor({ category, handle }));
    const id = await requestJob(stage.client.store, category, 0);
    await begun.promise;
    await stage.eventStore.restart();
    await eventually(() => expect(runner.progress.isJoined).toBe(true));
    go.resolve();
    await ends(category, id, 'JobDone.v1');
    await eventually(() => expect(runner.progress).toMatchObject({ running: 0, held: 0, lagMs: 0 }));
    expect(calls).toBe(1);
  });
});
