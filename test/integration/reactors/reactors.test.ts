/**
 * The guarantees of reactors, in one process on one event store; for failing workers see `test/campaigns/reactors.test.ts`.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { derivedId, newId } from '#libs/kernel/ids.ts';
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import {
  connectEventStore,
  type EventStoreClients,
  type EventStore,
  StoreClock,
  type StoredEvent,
  textOf,
} from '#libs/platform/eventstore/index.ts';
import { silentLog, within } from '#libs/platform/lifecycle/index.ts';
import {
  type AnyReactor,
  type AttemptOutcome,
  GROUP_PREFIX,
  groupNameOf,
  type Process,
  reactor,
  ReactorRunner,
} from '#libs/platform/reactors/index.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { TipCache } from '#libs/platform/streams/index.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';
import { jobReactor, nextOf, requestJob, type JobEvent, type JobState } from '#test/support/reactors/jobs.ts';

let eventStore: TestEventStore;
let client: EventStoreClients;
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  eventStore = await startTestEventStore();
  client = await connectEventStore({
    url: eventStore.url,
    embedded: eventStore.local,
    backoff: { firstMs: 10, maxMs: 50 },
  });
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((runner) => runner.stop()));
});

afterAll(async () => {
  await client?.close();
  await eventStore?.stop();
});

/** Each test has a category, and thereby a group, of its own. */
const newCategory = (): string => `job${newId().replaceAll('-', '')}`;

function start(declared: AnyReactor, stores: typeof client & { readonly stopTimeoutMs?: number } = client) {
  const outcomes: AttemptOutcome[] = [];
  const abort = new AbortController();
  const onAttempt = (outcome: AttemptOutcome): void => void outcomes.push(outcome);
  const runner = new ReactorRunner(declared, { ...stores, log: silentLog, onAttempt });
  const ended = runner.run(abort.signal);
  const stop = async (): Promise<void> => {
    abort.abort();
    await ended;
  };
  running.push({ stop });
  return { runner, outcomes, stop };
}

async function eventsOf(category: string, id: string): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const event of client.store.readStream(`${category}-${id}`)) events.push(event);
  return events;
}

async function typesOf(category: string, id: string): Promise<string[]> {
  return (await eventsOf(category, id)).map(({ type }) => type);
}

async function ends(category: string, id: string, ...types: readonly string[]): Promise<void> {
  await eventually(async () => expect(await typesOf(category, id)).toEqual(['JobRequested.v1', ...types]));
}

/** A deadline applies by the event store's clock, which a worker knows once it has appended. */
async function clockIsMeasured(): Promise<void> {
  const category = newCategory();
  const { stop } = start(jobReactor({ category }));
  await ends(category, await requestJob(client.store, category, 0), 'JobDone.v1');
  await eventually(() => expect(client.clock.nowMs).not.toBeNull());
  await stop();
}

const HOUR_MS = 3_600_000;

/** The store as if it had written these events an hour earlier. */
function anHourEarlier(isEarlier: (event: StoredEvent) => boolean): EventStore {
  return {
    append: (...args) => client.store.append(...args),
    async *readStream(...args) {
      for await (const event of client.store.readStream(...args)) {
        yield isEarlier(event) ? { ...event, createdMs: event.createdMs - HOUR_MS } : event;
      }
    },
    ping: () => client.store.ping(),
    close: () => client.store.close(),
  };
}

type JobProcess = Process<JobState, JobEvent>;
const never = (): Promise<never> => new Promise(() => undefined);

describe('organizations', () => {
  it('do not wait for each other, whatever the steps of one wait for, and however many it has', async () => {
    const category = newCategory();
    const order: string[] = [];
    const handle = (_event: unknown, process: JobProcess) => {
      order.push(process.organizationId);
      return process.organizationId === 'a' ? never() : [nextOf(process, 'worker')];
    };
    const declared = jobReactor({ category, handle, limits: { concurrency: 4, stepTimeoutMs: 600_000 } });
    for (let n = 0; n < 300; n += 1) await requestJob(client.store, category, 0, { organizationId: 'a' });
    const others = [];
    for (const organizationId of ['b', 'c']) {
      others.push(await requestJob(client.store, category, 0, { organizationId }));
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
      await requestJob(client.store, category, 0, { organizationId });
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
    const id = await requestJob(client.store, category, 2);
    const { outcomes } = start(declared);
    await ends(category, id, 'JobStepped.v1', 'JobStepped.v1', 'JobDone.v1');
    await eventually(() => expect(outcomes).toEqual(['handled', 'handled', 'handled']));
    // The last answer may be under way.
    await eventually(async () => {
      const [group] = await client.groups.list(groupNameOf(declared));
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
    const id = await requestJob(client.store, category, 0);
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
    const id = await requestJob(client.store, category, 0);
    await ends(category, id, 'JobFailed.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toEqual({ reason: 'attempts', error: 'attempt 3' });
    await eventually(() => expect(outcomes).toEqual(['failed', 'failed', 'failed', 'given_up']));
  });

  it('does not count an unavailable store as a failure', async () => {
    const category = newCategory();
    let calls = 0;
    const handle = (_event: unknown, process: JobProcess) => {
      calls += 1;
      if (calls < 5) throw storeUnavailable('redis');
      return [nextOf(process, `attempt ${process.attempt}`)];
    };
    start(jobReactor({ category, handle, limits: { maxAttempts: 1 } }));
    const id = await requestJob(client.store, category, 0);
    await ends(category, id, 'JobDone.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toEqual({ worker: 'attempt 1' });
  });

  it('ends a process at its deadline while its handler waits', async () => {
    const category = newCategory();
    const { outcomes } = start(jobReactor({ category, handle: () => [], limits: { deadlineMs: 1_500 } }));
    const id = await requestJob(client.store, category, 0);
    await ends(category, id, 'JobFailed.v1');
    expect((await eventsOf(category, id)).at(-1)?.data).toMatchObject({ reason: 'deadline' });
    await eventually(() => expect(outcomes.at(-1)).toBe('given_up'));
    expect(new Set(outcomes)).toEqual(new Set(['waiting', 'given_up']));
  });

  it('ends a process whose deadline has passed while no worker ran, without handling it', async () => {
    const category = newCategory();
    await clockIsMeasured();
    const id = await requestJob(client.store, category, 0);
    const [{ createdMs } = { createdMs: 0 }] = await eventsOf(category, id);
    await eventually(() => expect(Date.now()).toBeGreaterThan(createdMs + 50));
    start(jobReactor({ category, handle: () => expect.unreachable(), limits: { deadlineMs: 50 } }));
    await ends(category, id, 'JobFailed.v1');
  });

  it('counts the deadline of a process from where that says it has started again', async () => {
    const category = newCategory();
    await clockIsMeasured();
    const id = await requestJob(client.store, category, 0);
    const { stop } = start(jobReactor({ category }));
    await ends(category, id, 'JobDone.v1');
    await stop();
    await requestJob(client.store, category, 0, { id, expected: streamRevision(1) });
    const store = anHourEarlier(({ revision }) => revision < 2);
    const startRevision = ({ requestRevision }: JobState) => requestRevision;
    start(jobReactor({ category, startRevision }), { ...client, store });
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
    const id = await requestJob(client.store, category, 1);
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
    const id = await requestJob(client.store, category, 0);
    await ends(category, id, 'JobDone.v1');
    late.resolve();
    await eventually(() => expect(outcomes).toEqual(['failed', 'handled']));
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
      await requestJob(client.store, requests, 1),
      await requestJob(client.store, requests, 0),
    ];
    const processOf = async (id: string): Promise<string> => {
      const [request] = await eventsOf(requests, id);
      return derivedId(request?.id ?? '', `${requests}-${id}`);
    };
    await eventually(async () => expect(await typesOf(category, await processOf(wanted))).toEqual(['JobDone.v1']));
    await eventually(async () => {
      const own = (await client.groups.list(`${GROUP_PREFIX}${category}-`))[0];
      expect(own).toMatchObject({ inFlight: 0, waiting: 0 });
      expect(outcomes.length).toBeGreaterThanOrEqual(2);
    });
    expect(await typesOf(category, await processOf(ignored))).toEqual([]);
  });

  it('starts processes for old events of other streams, and gives up none that does not exist', async () => {
    const [category, requests] = [newCategory(), newCategory()];
    const ids = [await requestJob(client.store, requests, 1), await requestJob(client.store, requests, 0)];
    const ignored = await requestJob(client.store, requests, 0);
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
    const id = await requestJob(client.store, category, 0);
    await requestJob(client.store, category, 0, { id, expected: streamRevision(0) });
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
    const store = new CountingStore(client.store);
    const { outcomes } = start(jobReactor({ category }), { ...client, store });
    const id = await requestJob(client.store, category, 8);
    await ends(category, id, ...Array.from({ length: 8 }, () => 'JobStepped.v1'), 'JobDone.v1');
    await eventually(() => expect(outcomes).toHaveLength(9));
    expect(store.eventsRead).toBe(eventStore.local === undefined ? 10 : 1);
  });

  it('records nothing of a step that begins before it has seen the end of its process', async () => {
    const category = newCategory();
    const others = { type: 'JobFailed.v1', data: { reason: 'cancelled', error: null } } as const;
    class OvertakenStore extends CountingStore {
      override async append(...[stream, expected, events]: Parameters<EventStore['append']>) {
        const result = await super.append(stream, expected, events);
        const isStep = result.kind === 'appended' && events.some(({ type }) => type === 'JobStepped.v1');
        if (isStep)
          await client.store.append(stream, streamRevision(expected + 1), [logEvent(others.data, others.type)]);
        return result;
      }
    }
    const store = new OvertakenStore(client.store);
    const { outcomes, runner } = start(jobReactor({ category }), { ...client, store });
    const id = await requestJob(client.store, category, 3);
    await eventually(async () => expect(await typesOf(category, id)).toContain(others.type));
    await eventually(() => expect(runner.progress).toMatchObject({ running: 0, held: 0 }));
    expect(await typesOf(category, id)).toEqual(['JobRequested.v1', 'JobStepped.v1', others.type]);
    expect(outcomes.filter((outcome) => outcome === 'handled')).toHaveLength(2);
  });

  it('waits before the first attempt at an event', async () => {
    const category = newCategory();
    const never = new Promise<never>(() => undefined);
    const { runner } = start({ ...jobReactor({ category, handle: () => never }), delayMs: () => 3_600_000 });
    await requestJob(client.store, category, 0);
    await eventually(() => expect(runner.progress).toMatchObject({ held: 1, running: 0 }));
  });

  it('does not read processes that are known to have ended', async () => {
    const category = newCategory();
    const store = new CountingStore(client.store);
    const { outcomes } = start({ ...jobReactor({ category }), hasEnded: () => true }, { ...client, store });
    const id = await requestJob(client.store, category, 0);
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
    for (const id of ids) await client.store.append(`${category}-${id}`, NO_EVENTS, [event]);
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
      const id = await requestJob(client.store, category, 2);
      const stepped = logEvent({ step: 0, worker: 'test', effect: newId() }, 'JobStepped.v1');
      await client.store.append(`${category}-${id}`, streamRevision(0), [stepped]);
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
    const id = await requestJob(client.store, category, 0);
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
    const { runner, stop } = start(jobReactor({ category, handle }), { ...client, stopTimeoutMs: 1_000 });
    await requestJob(client.store, category, 0);
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
    const id = await requestJob(client.store, category, 0);
    await begun.promise;
    await eventStore.restart();
    await eventually(() => expect(runner.progress.isJoined).toBe(true));
    go.resolve();
    await ends(category, id, 'JobDone.v1');
    await eventually(() => expect(runner.progress).toMatchObject({ running: 0, held: 0, lagMs: 0 }));
    expect(calls).toBe(1);
  });
});

describe('a worker whose clock is an hour ahead', () => {
  const aheadAnHour = () => {
    const store = anHourEarlier(() => true);
    return { ...client, store, clock: new StoreClock(store) };
  };

  it('gives up no process before its deadline, and records the times of the event store', async () => {
    const category = newCategory();
    const stores = aheadAnHour();
    const { outcomes } = start(jobReactor({ category }), stores);
    await ends(category, await requestJob(client.store, category, 0), 'JobDone.v1');
    await eventually(() => expect(Math.abs((stores.clock.nowMs ?? 0) - (Date.now() - HOUR_MS))).toBeLessThan(5_000));
    const id = await requestJob(client.store, category, 1);
    await ends(category, id, 'JobStepped.v1', 'JobDone.v1');
    await eventually(() => expect(outcomes).toEqual(['handled', 'handled', 'handled']));
    const times = (await eventsOf(category, id)).map(({ metadata }) => Date.parse(textOf(metadata, 'at') ?? ''));
    expect(times.at(-1)).toBeLessThan(Date.now() - HOUR_MS / 2);
  });
});

describe('two workers on the same event', () => {
  async function requested(category: string): Promise<StoredEvent> {
    const [event] = await eventsOf(category, await requestJob(client.store, category, 0));
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
        client,
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
    const id = await requestJob(client.store, category, 2);
    const handleAll = async (worker: string, tips: TipCache, revisions: readonly number[]): Promise<void> => {
      for (const revision of revisions) {
        const event = (await eventsOf(category, id))[revision];
        if (event === undefined) throw new Error('not stored');
        const step = new Step(jobReactor({ category, worker }), { ...client, tips }, event);
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
        client,
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

describe('events that cannot be handled', () => {
  it('are parked with the reason, and handled when they are retried', async () => {
    const category = newCategory();
    const declared = jobReactor({ category });
    const broken = { ...declared, giveUp: () => [], limits: { maxAttempts: 0 } };
    const first = start(broken);
    const id = await requestJob(client.store, category, 0);
    const group = groupNameOf(declared);
    await eventually(async () => {
      const reason = expect.stringContaining(`${category}-${id} was given up (attempts) and has not ended`) as unknown;
      const parked = { stream: `${category}-${id}`, revision: 0, type: 'JobRequested.v1', reason };
      expect(await client.groups.parked(group, 10)).toMatchObject([parked]);
    });
    expect(first.outcomes).toEqual(['parked']);
    await first.stop();
    start(declared);
    await client.groups.retryParked(group);
    await ends(category, id, 'JobDone.v1');
    await eventually(async () => expect(await client.groups.parked(group, 10)).toEqual([]));
  });

  it('are parked when their schema does not fit', async () => {
    const category = newCategory();
    const declared = jobReactor({ category });
    const { outcomes } = start(declared);
    await requestJob(client.store, category, 'many' as unknown as number);
    await eventually(() => expect(outcomes).toEqual(['parked']));
    await eventually(async () => {
      const [parked] = await client.groups.parked(groupNameOf(declared), 10);
      expect(parked?.reason).toContain('steps: Invalid input');
    });
  });
});

describe('a consumer group of a reactor', () => {
  it('keeps the longest time-out of workers of two versions, which do not remove each other', async () => {
    const category = newCategory();
    const [short, long] = [1_000, 2_000].map((stepTimeoutMs) => jobReactor({ category, limits: { stepTimeoutMs } }));
    let interruptions = 0;
    const other = await connectEventStore({
      url: eventStore.url,
      embedded: eventStore.local,
      backoff: { firstMs: 10, maxMs: 50 },
      onInterruption: () => (interruptions += 1),
    });
    try {
      const workers = [long, short].map((declared) => start(declared as AnyReactor, other));
      for (const { runner } of workers) await eventually(() => expect(runner.progress.isJoined).toBe(true));
      // Each joins again, and finds the settings of the other one.
      const admin = connectClient(eventStore.url);
      for (let round = 0; round < 2; round++) {
        const before = interruptions;
        const { settings } = await admin.getPersistentSubscriptionToAllInfo(groupNameOf(short as AnyReactor));
        expect(settings.messageTimeout).toBe(4_000);
        await admin.updatePersistentSubscriptionToAll(groupNameOf(short as AnyReactor), settings);
        await eventually(() => expect(interruptions).toBeGreaterThan(before + 1));
        await eventually(async () => {
          expect((await other.groups.list(groupNameOf(short as AnyReactor)))[0]?.members).toBe(2);
        });
      }
      // Workers that remove each other never stop. A busy machine may lose a membership by itself.
      expect(interruptions).toBeLessThan(12);
      await admin.dispose();
    } finally {
      await Promise.all(running.splice(0).map((runner) => runner.stop()));
      await other.close();
    }
  });

  it('keeps count of failed attempts while its membership is lost again and again, with growing pauses', async () => {
    const category = newCategory();
    const interruptions: number[] = [];
    const other = await connectEventStore({
      url: eventStore.url,
      embedded: eventStore.local,
      backoff: { firstMs: 10, maxMs: 50 },
      onInterruption: (_error, failures) => interruptions.push(failures),
    });
    const admin = connectClient(eventStore.url);
    try {
      const attempts: number[] = [];
      const handle = (_event: unknown, { attempt }: JobProcess) => {
        attempts.push(attempt);
        throw new Error('always');
      };
      const limits = { maxAttempts: 3, pauseMs: { first: 300, longest: 300 } };
      const declared = jobReactor({ category, handle, limits });
      const { runner } = start(declared, other);
      const id = await requestJob(client.store, category, 0);
      for (let round = 1; round <= 3; round++) {
        await eventually(() => expect(attempts).toHaveLength(round));
        if (round === 3) break;
        const { settings } = await admin.getPersistentSubscriptionToAllInfo(groupNameOf(declared));
        await admin.updatePersistentSubscriptionToAll(groupNameOf(declared), settings);
        await eventually(() => expect(interruptions.length).toBeGreaterThanOrEqual(round));
        await eventually(() => expect(runner.progress.isJoined).toBe(true));
      }
      await ends(category, id, 'JobFailed.v1');
      expect(attempts).toEqual([1, 2, 3]);
      expect(interruptions).toEqual(interruptions.map((_, index) => index + 1));
    } finally {
      await admin.dispose();
      await Promise.all(running.splice(0).map((runner) => runner.stop()));
      await other.close();
    }
  });

  it('is updated when the limits change, and replaced when the types do', async () => {
    const category = newCategory();
    const [short, long] = [100, 200].map((stepTimeoutMs) => jobReactor({ category, limits: { stepTimeoutMs } }));
    const other = jobReactor({ category, on: ['JobRequested.v1'] });
    for (const declared of [short, long, other]) {
      if (declared === undefined) continue;
      const { runner, stop } = start(declared);
      await eventually(() => expect(runner.progress.isJoined).toBe(true));
      await stop();
    }
    const names = (await client.groups.list(`${GROUP_PREFIX}${category}-`)).map(({ name }) => name);
    expect(names).toEqual([groupNameOf(other)]);
  });

  it('that begins at the end of the log handles only later events', async () => {
    const category = newCategory();
    const old = await requestJob(client.store, category, 0);
    // The last event of the log may be handled.
    await requestJob(client.store, newCategory(), 0);
    const { runner } = start({ ...jobReactor({ category }), from: 'end' });
    await eventually(() => expect(runner.progress.isJoined).toBe(true));
    await ends(category, await requestJob(client.store, category, 0), 'JobDone.v1');
    expect(await typesOf(category, old)).toEqual(['JobRequested.v1']);
  });

  it('that begins at the end continues where the former one was when the types change', async () => {
    const category = newCategory();
    const former: AnyReactor = { ...jobReactor({ category, on: ['JobRequested.v1'] }), from: 'end' };
    const first = start(former);
    await eventually(() => expect(first.runner.progress.isJoined).toBe(true));
    await first.stop();
    const meanwhile = await requestJob(client.store, category, 1);
    await requestJob(client.store, newCategory(), 0);
    start({ ...jobReactor({ category }), from: 'end' });
    await ends(category, meanwhile, 'JobStepped.v1', 'JobDone.v1');
  });

  it('that begins at the end continues after the latest of its former ones, and keeps those with parked events', async () => {
    const category = newCategory();
    const withTypes = (...on: JobEvent['type'][]): AnyReactor => ({ ...jobReactor({ category, on }), from: 'end' });
    const reactors = [
      // Parks what it gets.
      { ...withTypes('JobRequested.v1'), giveUp: () => [], limits: { maxAttempts: 0 } },
      withTypes('JobRequested.v1', 'JobDone.v1'),
    ];
    const [oldest = '', latest = ''] = reactors.map(groupNameOf);
    const ids: string[] = [];
    const admin = connectClient(eventStore.url);
    for (const declared of reactors) {
      const { runner, stop } = start(declared);
      await eventually(() => expect(runner.progress.isJoined).toBe(true));
      const id = await requestJob(client.store, category, 0);
      ids.push(id);
      const [job] = await eventsOf(category, id);
      await eventually(async () => {
        const { stats } = await admin.getPersistentSubscriptionToAllInfo(groupNameOf(declared));
        expect(stats.lastCheckpointedEventPosition?.commit).toBeGreaterThanOrEqual(job?.position?.commit ?? 0n);
      });
      await stop();
    }
    await admin.dispose();
    const seen: string[] = [];
    const newest = withTypes('JobRequested.v1', 'JobDone.v1', 'JobStepped.v1');
    const { runner } = start({
      ...newest,
      isEnded: () => false,
      handle: (_event: unknown, { id, state }: JobProcess) => {
        seen.push(id);
        return state.outcome === null ? [{ type: 'JobDone.v1', data: { worker: 'newest' } }] : [];
      },
    });
    await eventually(() => expect(runner.progress.isJoined).toBe(true));
    const id = await requestJob(client.store, category, 0);
    await eventually(() => expect(seen).toContain(id));
    expect(seen).not.toContain(ids[0]);
    const names = (await client.groups.list(`${GROUP_PREFIX}${category}-`)).map(({ name }) => name);
    expect(names).toEqual([groupNameOf(newest), oldest].toSorted());
    expect(names).not.toContain(latest);
  });

  it('that replaces others continues where the slowest of them was, and deletes their groups once they have no members', async () => {
    const [category, fast, slow] = [newCategory(), newCategory(), newCategory()];
    const on = ['JobRequested.v1'] as const;
    /** Acknowledges jobs without steps, and all jobs if it is the fast one; holds the others. */
    const replaced = (name: string): AnyReactor => ({
      ...jobReactor({ category, on, handle: never }),
      name,
      isEnded: ({ steps }: JobState) => name === fast || steps === 0,
    });
    const admin = connectClient(eventStore.url);
    const reaches = async (name: string, id: string): Promise<void> => {
      const [job] = await eventsOf(category, id);
      await eventually(async () => {
        const { stats } = await admin.getPersistentSubscriptionToAllInfo(groupNameOf({ name, on }));
        expect(stats.lastCheckpointedEventPosition?.commit).toBeGreaterThanOrEqual(job?.position?.commit ?? 0n);
      });
    };
    const groups = async (): Promise<string[]> => (await client.groups.list(GROUP_PREFIX)).map(({ name }) => name);
    const former = [start(replaced(fast)), start(replaced(slow))] as const;
    for (const { runner } of former) await eventually(() => expect(runner.progress.isJoined).toBe(true));
    const handled = [await requestJob(client.store, category, 0), await requestJob(client.store, category, 0)] as const;
    for (const name of [fast, slow]) await reaches(name, handled[1]);
    const pending = [await requestJob(client.store, category, 1), await requestJob(client.store, category, 0)] as const;
    await reaches(fast, pending[1]);
    await former[1].stop();

    const seen: string[] = [];
    const handle = (_event: unknown, process: JobProcess) => {
      seen.push(process.id);
      return [nextOf({ ...process, state: { ...process.state, steps: 0 } }, 'newest')];
    };
    const newest: AnyReactor = { ...jobReactor({ category, on, handle }), from: 'former', formerly: [fast, slow] };
    const first = start(newest);
    for (const id of pending) await ends(category, id, 'JobDone.v1');
    expect(seen).not.toContain(handled[0]);
    expect(await groups()).toContain(groupNameOf({ name: fast, on }));
    expect(await groups()).not.toContain(groupNameOf({ name: slow, on }));
    await former[0].stop();
    await first.stop();
    start(newest);
    await eventually(async () => expect(await groups()).not.toContain(groupNameOf({ name: fast, on })));
    expect(await groups()).toContain(groupNameOf(newest));
    await admin.dispose();
  });

  it('that replaces reactors that never ran handles the log from its start', async () => {
    const category = newCategory();
    const id = await requestJob(client.store, category, 0);
    await requestJob(client.store, newCategory(), 0);
    start({ ...jobReactor({ category }), from: 'former', formerly: [newCategory()] });
    await eventually(async () => expect(await typesOf(category, id)).toEqual(['JobRequested.v1', 'JobDone.v1']));
  });
});
