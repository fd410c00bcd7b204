/** What the tests of reactors share: an event store for the file, reactors that run until a test ends, and what they wrote. */
import { afterAll, afterEach, beforeAll, expect } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import {
  connectEventStore,
  type EventStoreClients,
  type EventStore,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import {
  type AnyReactor,
  type AttemptOutcome,
  type Process,
  ReactorRunner,
  type ReactorRunnerOptions,
} from '#libs/platform/reactors/index.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { jobReactor, requestJob, type JobEvent, type JobState } from '#test/support/reactors/jobs.ts';

/** Each test has a category, and thereby a group, of its own. */
export const newCategory = (): string => `job${newId().replaceAll('-', '')}`;

export type JobProcess = Process<JobState, JobEvent>;
export const never = (): Promise<never> => new Promise(() => undefined);

export const HOUR_MS = 3_600_000;

/** Starts an event store for the file. Reactors stop after each test. */
export function useReactors() {
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

  const stopAll = () => Promise.all(running.splice(0).map((runner) => runner.stop()));
  afterEach(stopAll);

  afterAll(async () => {
    await client?.close();
    await eventStore?.stop();
  });

  function start(
    declared: AnyReactor,
    stores: typeof client & Pick<ReactorRunnerOptions, 'stopTimeoutMs' | 'tips'> = client,
  ) {
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

  return {
    get eventStore() {
      return eventStore;
    },
    get client() {
      return client;
    },
    start,
    stopAll,
    eventsOf,
    typesOf,
    ends,
    clockIsMeasured,
    anHourEarlier,
  };
}
