/**
 * A projector passes over what the commands of its process have applied. It must not where Redis may have lost that: then
 * nothing would apply it again, because the checkpoint that is saved next lies behind it.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { FeedItem, LogFeed } from '#libs/platform/eventstore/index.ts';
import { CHANNEL_READ_MODEL } from '#libs/features/channels/channel.keys.ts';
import { ReadModel, READ_MODELS_PREFIX } from '#libs/platform/readmodel/index.ts';
import { listKeys } from '#libs/platform/readmodel/read-model.keys.ts';
import type { ApplyOutcome, EntityWrite } from '#libs/platform/readmodel/read-model.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { Follower } from '#services/projector/follower.ts';
import { ProgressReport } from '#services/projector/progress.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { keysIn, nodeWith } from '#test/support/redis-commands.ts';

class CountingReadModel extends ReadModel {
  writes = 0;
  looks = 0;
  refusal: Error | null = null;

  override async apply(writes: readonly EntityWrite[]): Promise<ApplyOutcome[]> {
    this.writes += writes.length;
    const { refusal } = this;
    this.refusal = null;
    if (refusal !== null) throw refusal;
    return super.apply(writes);
  }

  override revisions(keys: readonly string[]): ReturnType<ReadModel['revisions']> {
    this.looks += keys.length;
    return super.revisions(keys);
  }
}

let test: TestPlatform;
let readModel: CountingReadModel;
let features: Features;
let id: string;
let loop: ProjectionLoop;
let stop: () => Promise<void>;
/** Holds back what the feed delivers. */
let delivering: Promise<void>;

const organizationId = newId();

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.stop());

beforeEach(async () => {
  readModel = new CountingReadModel(test.platform.redis);
  features = composeFeatures({ ...test.platform, readModel });
  delivering = Promise.resolve();
  id = newId();
  await features.channels.create(serviceCommand(organizationId), { id, ...PLAIN_CHANNEL, name: 'first' });
  begin();
  await caughtUp();
  Object.assign(readModel, { writes: 0, looks: 0 });
});
afterEach(() => stop());

function begin(): void {
  const { feed } = test.platform;
  const held: LogFeed = {
    async *subscribe(options) {
      for await (const item of feed.subscribe(options)) {
        await delivering;
        yield item;
      }
    },
    head: () => feed.head(),
    idAt: (at) => feed.idAt(at),
    mayHaveRemoved: (...asked) => feed.mayHaveRemoved(...asked),
  };
  const { state, projector } = features;
  loop = new ProjectionLoop({ feed: held, state, projector, onProblem: () => undefined });
  const abort = new AbortController();
  const ended = loop.run(abort.signal);
  stop = async () => {
    abort.abort();
    await ended;
  };
}

async function caughtUp(): Promise<void> {
  const head = await test.platform.feed.head();
  await eventually(() => expect(loop.progress).toMatchObject({ phase: 'live', position: head }));
}

function hold(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  delivering = promise;
  return resolve;
}

const rename = (name: string) => features.channels.update(serviceCommand(organizationId), id, { name });

/** As a failover to a Redis that lags sets the channel back, and the checkpoints with it. */
async function snapshot(): Promise<() => Promise<void>> {
  const { redis } = test.platform;
  const all = async () => keysIn(redis, `${READ_MODELS_PREFIX}*`);
  const dumps = await Promise.all(
    (await all()).map(async (key) => [key, await nodeWith(redis, key).dumpBuffer(key)] as const),
  );
  return async () => {
    await redis.remove(await all());
    for (const [key, dump] of dumps) await nodeWith(redis, key).restore(key, 0, dump);
  };
}

async function shown(): Promise<unknown> {
  const { document } = features.projector.keysOf({ category: 'channel', organizationId, id });
  const text = await nodeWith(test.platform.redis, document).get(document);
  return /"name":"([^"]*)"/.exec(String(text))?.[1];
}

describe('events that a command of the process has applied', () => {
  it('are neither looked up nor applied again', async () => {
    for (const name of ['second', 'third']) {
      await rename(name);
      await caughtUp();
    }
    expect([readModel.writes, readModel.looks]).toEqual([2, 0]);
  });

  it('are waited for where the feed is faster, and applied where that fails', async () => {
    readModel.refusal = storeUnavailable('Redis');
    await rename('second');
    await caughtUp();
    expect([readModel.writes, await shown()]).toEqual([2, 'second']);
  });

  it('are applied where they were applied before the projector began, and lost', async () => {
    await stop();
    const setBack = await snapshot();
    await rename('second');
    await setBack();
    begin();
    await caughtUp();
    expect(await shown()).toBe('second');
  });

  it('are applied where Redis is back without them before the feed delivers them', async () => {
    const deliver = hold();
    const setBack = await snapshot();
    await rename('second');
    await setBack();
    // As the role does when Redis is connected again.
    loop.restart();
    deliver();
    await caughtUp();
    expect(await shown()).toBe('second');
  });

  it('are applied where the read models are deleted meanwhile', async () => {
    const deliver = hold();
    await rename('second');
    await features.state.clear();
    deliver();
    await eventually(async () => expect([await features.state.isComplete(), await shown()]).toEqual([true, 'second']));
  });

  it('are applied where they are in a partition that the process got later, with a checkpoint from before', async () => {
    await stop();
    const { projector, state } = features;
    const progress = new ProgressReport(undefined, () => undefined);
    const parts = { projector, progress, recent: undefined, witness: state.witness, onLive: () => undefined };
    const follower = new Follower({ ...parts, onStale: () => undefined });
    const abort = new AbortController();
    async function* items(): AsyncGenerator<FeedItem> {
      yield { kind: 'caught-up' };
      const setBack = await snapshot();
      await rename('second');
      await setBack();
      yield { kind: 'assigned', checkpoints: [] };
      for await (const event of test.platform.store.readStream(`channel-${id}`))
        yield { kind: 'events', events: [event] };
    }
    const checkpoints = { save: async () => true, begin: () => undefined };
    await follower.follow({ items: items(), checkpoints }, abort.signal);
    expect(await shown()).toBe('second');
  });
});

it('an entity is in its list, though Redis refused the entry and then took the entity', async () => {
  const owner = newId();
  const { members } = listKeys(CHANNEL_READ_MODEL, owner);
  const { redis } = test.platform;
  const listed = async (): Promise<readonly string[]> => {
    const page = await features.channels.list(owner, { archived: false }, { offset: 0, size: 10, after: null });
    return page.ids;
  };
  const deliver = hold();
  // A full Redis may refuse the one and take the other, too, when others free memory in between.
  await nodeWith(redis, members).set(members, 'of another type');
  const made = newId();
  await features.channels.create(serviceCommand(owner), { id: made, ...PLAIN_CHANNEL, name: 'made' });
  deliver();
  await eventually(() => expect(loop.progress.problem).not.toBeNull());
  await redis.remove([members]);
  await caughtUp();
  expect(await listed()).toEqual([made]);
});
