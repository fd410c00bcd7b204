/** Consumer groups of reactors: failures, lost memberships, where a new group begins, and the replacement of others. */
import { describe, expect, it } from 'vitest';

import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { type AnyReactor, GROUP_PREFIX, groupNameOf } from '#libs/platform/reactors/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { jobReactor, nextOf, requestJob, type JobEvent, type JobState } from '#test/support/reactors/jobs.ts';

import { type JobProcess, never, newCategory, useReactors } from './running-reactors.ts';

const stage = useReactors();
const { ends, eventsOf, start, stopAll, typesOf } = stage;

describe('events that cannot be handled', () => {
  it('are parked with the reason, and handled when they are retried', async () => {
    const category = newCategory();
    const declared = jobReactor({ category });
    const broken = { ...declared, giveUp: () => [], limits: { maxAttempts: 0 } };
    const first = start(broken);
    const id = await requestJob(stage.client.store, category, 0);
    const group = groupNameOf(declared);
    await eventually(async () => {
      const reason = expect.stringContaining(`${category}-${id} was given up (attempts) and has not ended`) as unknown;
      const parked = { stream: `${category}-${id}`, revision: 0, type: 'JobRequested.v1', reason };
      expect(await stage.client.groups.parked(group, 10)).toMatchObject([parked]);
    });
    expect(first.outcomes).toEqual(['parked']);
    await first.stop();
    start(declared);
    await stage.client.groups.retryParked(group);
    await ends(category, id, 'JobDone.v1');
    await eventually(async () => expect(await stage.client.groups.parked(group, 10)).toEqual([]));
  });

  it('are parked when their schema does not fit', async () => {
    const category = newCategory();
    const declared = jobReactor({ category });
    const { outcomes } = start(declared);
    await requestJob(stage.client.store, category, 'many' as unknown as number);
    await eventually(() => expect(outcomes).toEqual(['parked']));
    await eventually(async () => {
      const [parked] = await stage.client.groups.parked(groupNameOf(declared), 10);
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
      url: stage.eventStore.url,
      embedded: stage.eventStore.local,
      backoff: { firstMs: 10, maxMs: 50 },
      onInterruption: () => (interruptions += 1),
    });
    try {
      const workers = [long, short].map((declared) => start(declared as AnyReactor, other));
      for (const { runner } of workers) await eventually(() => expect(runner.progress.isJoined).toBe(true));
      // Each joins again, and finds the settings of the other one.
      const admin = connectClient(stage.eventStore.url);
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
      await stopAll();
      await other.close();
    }
  });

  it('keeps count of failed attempts while its membership is lost again and again, with growing pauses', async () => {
    const category = newCategory();
    const interruptions: number[] = [];
    const other = await connectEventStore({
      url: stage.eventStore.url,
      embedded: stage.eventStore.local,
      backoff: { firstMs: 10, maxMs: 50 },
      onInterruption: (_error, failures) => interruptions.push(failures),
    });
    const admin = connectClient(stage.eventStore.url);
    try {
      const attempts: number[] = [];
      const handle = (_event: unknown, { attempt }: JobProcess) => {
        attempts.push(attempt);
        throw new Error('always');
      };
      const limits = { maxAttempts: 3, pauseMs: { first: 300, longest: 300 } };
      const declared = jobReactor({ category, handle, limits });
      const { runner } = start(declared, other);
      const id = await requestJob(stage.client.store, category, 0);
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
      await stopAll();
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
    const names = (await stage.client.groups.list(`${GROUP_PREFIX}${category}-`)).map(({ name }) => name);
    expect(names).toEqual([groupNameOf(other)]);
  });

  it('that begins at the end of the log handles only later events', async () => {
    const category = newCategory();
    const old = await requestJob(stage.client.store, category, 0);
    // The last event of the log may be handled.
    await requestJob(stage.client.store, newCategory(), 0);
    const { runner } = start({ ...jobReactor({ category }), from: 'end' });
    await eventually(() => expect(runner.progress.isJoined).toBe(true));
    await ends(category, await requestJob(stage.client.store, category, 0), 'JobDone.v1');
    expect(await typesOf(category, old)).toEqual(['JobRequested.v1']);
  });

  it('that begins at the end continues where the former one was when the types change', async () => {
    const category = newCategory();
    const former: AnyReactor = { ...jobReactor({ category, on: ['JobRequested.v1'] }), from: 'end' };
    const first = start(former);
    await eventually(() => expect(first.runner.progress.isJoined).toBe(true));
    await first.stop();
    const meanwhile = await requestJob(stage.client.store, category, 1);
    await requestJob(stage.client.store, newCategory(), 0);
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
    const admin = connectClient(stage.eventStore.url);
    for (const declared of reactors) {
      const { runner, stop } = start(declared);
      await eventually(() => expect(runner.progress.isJoined).toBe(true));
      const id = await requestJob(stage.client.store, category, 0);
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
    const id = await requestJob(stage.client.store, category, 0);
    await eventually(() => expect(seen).toContain(id));
    expect(seen).not.toContain(ids[0]);
    const names = (await stage.client.groups.list(`${GROUP_PREFIX}${category}-`)).map(({ name }) => name);
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
    const admin = connectClient(stage.eventStore.url);
    const reaches = async (name: string, id: string): Promise<void> => {
      const [job] = await eventsOf(category, id);
      await eventually(async () => {
        const { stats } = await admin.getPersistentSubscriptionToAllInfo(groupNameOf({ name, on }));
        expect(stats.lastCheckpointedEventPosition?.commit).toBeGreaterThanOrEqual(job?.position?.commit ?? 0n);
      });
    };
    const groups = async (): Promise<string[]> =>
      (await stage.client.groups.list(GROUP_PREFIX)).map(({ name }) => name);
    const former = [start(replaced(fast)), start(replaced(slow))] as const;
    for (const { runner } of former) await eventually(() => expect(runner.progress.isJoined).toBe(true));
    const handled = [
      await requestJob(stage.client.store, category, 0),
      await requestJob(stage.client.store, category, 0),
    ] as const;
    for (const name of [fast, slow]) await reaches(name, handled[1]);
    const pending = [
      await requestJob(stage.client.store, category, 1),
      await requestJob(stage.client.store, category, 0),
    ] as const;
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
    const id = await requestJob(stage.client.store, category, 0);
    await requestJob(stage.client.store, newCategory(), 0);
    start({ ...jobReactor({ category }), from: 'former', formerly: [newCategory()] });
    await eventually(async () => expect(await typesOf(category, id)).toEqual(['JobRequested.v1', 'JobDone.v1']));
  });
});
