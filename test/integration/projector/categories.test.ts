/** Read models of one category are rebuilt, or get a new version, while all others keep answering. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { comparePositions, decodePosition } from '#libs/platform/eventstore/index.ts';
import {
  type AnyProjection,
  type EntityReader,
  projectionKeys,
  type Projector,
} from '#libs/platform/readmodel/index.ts';
import { parseStreamName } from '#libs/platform/streams/index.ts';
import { composeFeatures, composeReadModels, type Features, PROJECTIONS, type ReadModels } from '#services/features.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { applying } from '#test/support/applying-projector.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { flush, nodeWith } from '#test/support/redis-commands.ts';
import { composeUnapplied } from '#test/support/unapplied-writer.ts';

const USERS = 40;
const CHANNELS = 30;
const organizationId = newId();
const FIRST_PAGE = { size: 100, offset: 0, after: null };

/** The next Parley, which stores another shape of users. */
const NEXT: readonly AnyProjection[] = PROJECTIONS.map((projection: AnyProjection): AnyProjection =>
  projection.category === 'user'
    ? { ...projection, version: projection.version + 1, project: inUpperCase(projection) }
    : projection,
);

function inUpperCase({ project }: AnyProjection): AnyProjection['project'] {
  return (run, keys) => {
    const { operations, lists } = project(run, keys);
    return {
      lists,
      operations: operations.map((one) => ({ ...one, args: one.args.map((arg) => String(arg).toUpperCase()) })),
    };
  };
}

let test: TestPlatform;
let features: Features;
let models: ReadModels;
let next: ReadModels;
let userId: string;

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
  models = composeReadModels(test.platform);
  next = composeReadModels(test.platform, NEXT);
  for (let n = 0; n < CHANNELS; n++) {
    const id = newId();
    await features.channels.create(serviceCommand(organizationId), { id, ...PLAIN_CHANNEL });
    await createUser(features, `user ${n}`);
  }
  for (let n = CHANNELS; n < USERS; n++) userId = await createUser(features, `user ${n}`);
});
afterAll(() => test.stop());

async function createUser({ users }: Features, displayName: string): Promise<string> {
  const id = newId();
  const data = { id, displayName, email: null, imageUrl: null };
  await users.create(serviceCommand(organizationId), id, { type: 'UserCreated.v1', data });
  return id;
}

interface Running {
  readonly loop: ProjectionLoop;
  stop(): Promise<void>;
}

function project(parts: Pick<ReadModels, 'projector' | 'state'>, maxBatch?: number): Running {
  const abort = new AbortController();
  const { feed } = test.platform;
  const loop = new ProjectionLoop({ feed, ...parts, onProblem: () => undefined, ...(maxBatch && { maxBatch }) });
  const ended = loop.run(abort.signal);
  return { loop, stop: () => (abort.abort(), ended) };
}

const isLive = ({ loop }: Running): boolean => loop.progress.phase === 'live';

/** A projector that waits after some events of users until it is released. */
function heldAt(projector: Projector, events: number): { projector: Projector; held: Promise<void>; release(): void } {
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let users = 0;
  const holding = applying(projector, async (batch, options) => {
    users += batch.filter(({ stream }) => parseStreamName(stream).category === 'user').length;
    if (users > events) {
      held.resolve();
      await released.promise;
    }
    await projector.applyStored(batch, options);
  });
  return { projector: holding, held: held.promise, release: () => released.resolve() };
}

/** A list as REST answers it. */
async function listOf(reader: EntityReader, category: 'channel' | 'user'): Promise<string> {
  const facets = [category === 'user' ? 'all' : 'open=true'] as const;
  const page = await reader.page({ category, organizationId, facets }, FIRST_PAGE);
  return `${page.total} ${page.documents.map(({ json }) => json.toString()).join()}`;
}

/** Reads the list of channels all the time, and how far channels have come, until it is stopped. */
function watchChannels(reader: EntityReader): () => Promise<void> {
  const stop = new AbortController();
  const watch = async (): Promise<void> => {
    const list = await listOf(reader, 'channel');
    const { checkpoint } = CHANNEL_PROJECTION_KEYS;
    let before = decodePosition('0/0');
    for (; !stop.signal.aborted; await delay(5)) {
      expect(await listOf(reader, 'channel')).toBe(list);
      const now = decodePosition((await nodeWith(test.platform.redis, checkpoint).get(checkpoint)) ?? '');
      expect(comparePositions(now, before)).not.toBe(-1);
      before = now;
    }
  };
  const watched = watch();
  watched.catch(() => undefined);
  return () => (stop.abort(), watched);
}

describe('a new version of the read models of one category', () => {
  it('is built while all others answer, and the version before it stays up to date', async () => {
    const old = project(models);
    await eventually(() => isLive(old));
    const usersBefore = await listOf(models.reader, 'user');
    const { builds } = await models.state.begin();
    const unwatch = watchChannels(next.reader);

    const first = heldAt(next.projector, 5);
    const crashing = project({ ...next, projector: first.projector }, 3);
    await first.held;
    await expect(listOf(next.reader, 'user')).rejects.toMatchObject({ code: 'not_caught_up' });
    expect(String((await next.reader.document('user', organizationId, userId))?.json)).toContain(
      '"DISPLAY_NAME":"USER',
    );
    expect(await listOf(models.reader, 'user')).toBe(usersBefore);
    const users = NEXT.find(({ category }) => category === 'user');
    const { complete } = projectionKeys(users!);
    expect(await nodeWith(test.platform.redis, complete).get(complete)).toBeNull();
    first.release();
    await crashing.stop();

    const second = project(next, 3);
    await eventually(() => isLive(second));
    expect(await listOf(next.reader, 'user')).toBe(usersBefore.toUpperCase());
    // Neither of the two has applied this one.
    const late = await createUser(composeUnapplied(test.platform), 'late');
    await eventually(async () => {
      expect(await listOf(models.reader, 'user')).toContain(late);
      expect(await listOf(next.reader, 'user')).toContain(late.toUpperCase());
    });
    expect((await models.state.begin()).builds).toEqual(builds);
    await unwatch();
    await Promise.all([old.stop(), second.stop()]);

    const both = await dumpReadModels(test.platform.redis);
    await flush(test.platform.redis);
    for (const parts of [models, next])
      await rebuild({ feed: test.platform.feed, ...parts }, { signal: AbortSignal.timeout(30_000) });
    expect(await dumpReadModels(test.platform.redis)).toEqual(both);
  });
});

/** Rebuilds the users event by event while channels are read; the others, and what is built, stay the same. */
async function whileRebuilding(work: (start: (stopAfter?: number) => Promise<number>) => Promise<void>): Promise<void> {
  const before = await dumpReadModels(test.platform.redis);
  const { builds } = await models.state.begin();
  const unwatch = watchChannels(models.reader);
  await work((stopAfter = Infinity) => {
    const abort = new AbortController();
    const onProgress = ({ events }: { readonly events: number }) => events >= stopAfter && abort.abort();
    return rebuild(
      { feed: test.platform.feed, ...models },
      { only: ['user'], maxBatch: 1, signal: abort.signal, onProgress },
    );
  });
  await unwatch();
  expect(await dumpReadModels(test.platform.redis)).toEqual(before);
  const after = (await models.state.begin()).builds;
  const changed = [...after].filter(([category, build]) => builds.get(category) !== build);
  expect(changed.map(([category]) => category)).toEqual(['user']);
}

describe('a rebuild of one category', () => {
  it('folds the events of that category alone, and leaves all others as they are', async () => {
    await whileRebuilding(async (start) => {
      expect(await start()).toBe(USERS + 1);
    });
  });

  it('that was interrupted is finished by the next projector', async () => {
    await whileRebuilding(async (start) => {
      await expect(start(5)).rejects.toThrow();
      await expect(listOf(models.reader, 'user')).rejects.toMatchObject({ code: 'not_caught_up' });
      const projector = project(models);
      await eventually(() => isLive(projector));
      await projector.stop();
    });
  });

  it('is noticed by a running projector, which does not apply again what the others hold', async () => {
    const applied: string[] = [];
    const noting = applying(models.projector, (events, options) => {
      applied.push(...events.map(({ stream }) => parseStreamName(stream).category));
      return models.projector.applyStored(events, options);
    });
    const running = project({ ...models, projector: noting });
    await eventually(() => isLive(running));
    const before = await dumpReadModels(test.platform.redis);
    applied.length = 0;
    await models.state.only(['user']).clear();
    await eventually(async () => (await models.state.isComplete()) && isLive(running));
    await running.stop();
    expect(await dumpReadModels(test.platform.redis)).toEqual(before);
    expect(new Set(applied)).toEqual(new Set(['user']));
  });
});
