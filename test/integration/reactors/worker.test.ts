/** The role `worker` on real stores: its reports and its commands for operators. A rebuild triggers no effect. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { userEntity } from '#libs/features/users/index.ts';
import { NO_EVENTS } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { groupNameOf, reactor } from '#libs/platform/reactors/index.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, composeReadModels, type Features } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import type { RoleContext } from '#services/role.ts';
import { start, startReactors } from '#services/worker/role.ts';
import { runParley, type CommandRun } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { asRecord, readLog } from '#test/support/log-reader.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { jobReactor, requestJob } from '#test/support/reactors/jobs.ts';

let test: TestPlatform;
let context: Pick<RoleContext, 'platform' | 'logChecked'> & { readonly features: Features };
let worker: RunningRole;
let isMended = false;

const jobs = jobReactor({ category: 'job' });
const broken: typeof jobs = {
  ...jobReactor({ category: 'broken' }),
  handle: () => {
    throw new Error('cannot be done');
  },
  giveUp: () => (isMended ? [{ type: 'JobFailed.v1', data: { reason: 'mended', error: null } }] : []),
  limits: { maxAttempts: 1, pauseMs: { first: 1, longest: 1 } },
};
/** Of an entity that has a read model. */
const welcome = reactor({
  name: 'welcome',
  on: ['UserCreated.v1'],
  process: userEntity.projection,
  isEnded: (user) => user === null || user.displayName.endsWith('!'),
  handle: (_event, { state }) => [{ type: 'UserRenamed.v1', data: { displayName: `${state?.displayName}!` } }],
  giveUp: () => [{ type: 'UserDeactivated.v1', data: {} }],
});

beforeAll(async () => {
  test = await startTestPlatform();
  context = { platform: test.platform, features: composeFeatures(test.platform), logChecked: Promise.resolve() };
  worker = await startReactors(context, [jobs, broken, welcome]);
});
afterAll(async () => {
  await worker?.stop();
  await test?.stop();
});

const run = (...args: string[]): Promise<CommandRun> =>
  runParley({ EVENTSTORE_URL: test.eventStore.url, REDIS_URL: test.redis.url }, 'reactors', ...args);

const probe = async () => {
  const found = test.platform.probes.find(({ name }) => name === 'reactors');
  const { ok, detail } = (await found?.check()) ?? { ok: false };
  return { ok, detail: asRecord(detail) };
};

describe('the role worker', () => {
  it('reports its reactors in /health/ready and in metrics', async () => {
    const id = await requestJob(test.platform.store, 'job', 2);
    await eventually(async () =>
      expect((await readLog(test.eventStore.url, `job-${id}`)).at(-1)?.type).toBe('JobDone.v1'),
    );
    const idle = { joined: true, running: 0, held: 0, lag_seconds: 0 };
    await eventually(async () =>
      expect(await probe()).toEqual({ ok: true, detail: { job: idle, broken: idle, welcome: idle } }),
    );
    const metrics = await test.platform.metrics.scrape();
    expect(metrics).toContain('parley_reactor_attempts_total{reactor="job",outcome="handled"} 3');
    expect(metrics).toContain('parley_reactor_events_in_flight{reactor="job"} 0');
    expect(metrics).toContain('parley_reactor_lag_seconds{reactor="job"} 0');
    expect(metrics).toContain('parley_reactor_parked_events{reactor="job"} 0');
  });

  it('applies its outcomes to the read models, and repeats no effect when they are rebuilt', async () => {
    const [organizationId, id] = [newId(), newId()];
    const data = { id, displayName: 'Ada', email: null, imageUrl: null };
    const metadata = { ...logMetadata(newId()), organizationId };
    const created = { id: newId(), type: 'UserCreated.v1', data, metadata };
    await test.platform.store.append(`user-${id}`, NO_EVENTS, [created]);
    // No projector runs here.
    const { revision } = entityKeys(userEntity.projection, organizationId, id);
    await eventually(async () => expect(await test.platform.readModel.revisions([revision])).toEqual([1]));

    const before = await readLog(test.eventStore.url, '');
    const attempts = (await test.platform.metrics.scrape()).match(/reactor_attempts_total.*/g);
    const parts = { feed: test.platform.feed, ...composeReadModels(test.platform) };
    expect(await rebuild(parts, { signal: AbortSignal.timeout(60_000) })).toBeGreaterThan(0);
    expect(await test.platform.readModel.revisions([revision])).toEqual([1]);
    expect(await probe()).toMatchObject({ detail: { welcome: { running: 0, held: 0 } } });
    expect(await readLog(test.eventStore.url, '')).toEqual(before);
    expect((await test.platform.metrics.scrape()).match(/reactor_attempts_total.*/g)).toEqual(attempts);
  });

  it('shows operators its reactors and parked events, and retries these', async () => {
    const id = await requestJob(test.platform.store, 'broken', 0);
    await eventually(async () =>
      expect(JSON.parse((await run('list', '--json')).stdout)).toMatchObject([
        { name: 'broken', group: groupNameOf(broken), workers: 1, in_flight: 0, parked: 1, current: false },
        { name: 'job', group: groupNameOf(jobs), workers: 1, parked: 0, lag: 0 },
        { name: 'welcome', workers: 1, parked: 0 },
      ]),
    );
    const parked = await run('parked', 'broken');
    expect(parked.stdout).toContain(`broken-${id} was given up (attempts) and has not ended`);
    expect((await run('parked', 'job')).stdout).toBe('(none)\n');
    expect(await run('parked', 'nothing')).toMatchObject({
      exitCode: 1,
      stderr: 'parley: there is no reactor nothing; there are: broken, job, welcome\n',
    });

    isMended = true;
    expect((await run('retry', 'broken')).stdout).toBe('name     broken\nretried  1\n');
    await eventually(async () =>
      expect((await readLog(test.eventStore.url, `broken-${id}`)).at(-1)?.type).toBe('JobFailed.v1'),
    );
    await eventually(async () => expect((await run('parked', 'broken')).stdout).toBe('(none)\n'));
  });

  it('runs without a reactor, and reports that', async () => {
    const other = await start({ ...context, features: { ...context.features, reactors: [] } }, parseConfig({}));
    expect(await test.platform.probes.at(-1)?.check()).toEqual({ ok: true, detail: {} });
    await other.stop();
    await expect(startReactors(context, [jobs, jobs])).rejects.toThrow('two reactors have the same name: job, job');
  });
});
