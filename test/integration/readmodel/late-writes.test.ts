/**
 * A process looks at an entity in Redis, and writes what follows from it. Between the two, another process may write
 * more, or Redis may lose what was seen: a failover, a rebuild, an operator. All such cases of one short stream are tried.
 */
import { isDeepStrictEqual } from 'node:util';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type ChannelStreamEvent, channelProjection } from '#libs/features/channels/stream.ts';
import { foldEvents } from '#libs/kernel/decider.ts';
import { sequenceOf, type StreamEvent } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { ReadModel, READ_MODELS_PREFIX } from '#libs/platform/readmodel/index.ts';
import type { ApplyOutcome, EntityWrite } from '#libs/platform/readmodel/read-model.ts';
import { composeFeatures, composeReadModels, type ReadModels } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { flush, keysIn, nodeWith } from '#test/support/redis-commands.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

/** Writes late: what happens `meanwhile` comes between its look at the entity and its first write. */
class LateReadModel extends ReadModel {
  meanwhile: (() => Promise<void>) | null = null;

  override async apply(writes: readonly EntityWrite[]): Promise<ApplyOutcome[]> {
    const { meanwhile } = this;
    this.meanwhile = null;
    await meanwhile?.();
    return super.apply(writes);
  }
}

/** The read model as of one revision. */
interface Moment {
  readonly keys: readonly { readonly key: string; readonly dump: Buffer }[];
  readonly shown: Record<string, unknown>;
}

const organizationId = newId();
const id = newId();
const context = (): CommandContext => serviceCommand(organizationId, { at: '2026-02-03T04:05:06.000Z' });

let test: TestPlatform;
let late: LateReadModel;
let models: ReadModels;
let log: readonly StoredEvent[];
/** By revision + 1: the first is empty. */
const moments: Moment[] = [];

beforeAll(async () => {
  test = await startTestPlatform();
  const { platform } = test;
  late = new LateReadModel(platform.redis);
  models = composeReadModels({ ...platform, readModel: late });
  await writeChannel();
  const events: StoredEvent[] = [];
  for await (const event of platform.store.readStream(`channel-${id}`)) events.push(event);
  log = events;
  if (log.length !== 6) throw new Error('a command was refused');
  await flush(platform.redis);
  moments.push(await now());
  for (const event of log) {
    await composeReadModels(platform).projector.applyStored([event]);
    moments.push(await now());
  }
});
afterAll(() => test.stop());

/** An interaction is opened, grows, is complete, is edited and deleted. */
async function writeChannel(): Promise<void> {
  const { channels } = composeFeatures(test.platform);
  await channels.create(context(), { id, ...PLAIN_CHANNEL });
  const posted = await channels.interactions.post(
    context(),
    id,
    {
      participant: { type: 'system' },
      content: [{ type: 'text', text: 'one' }],
      contentRole: 'agent_response',
      complete: false,
      metadata: null,
      invocationConfig: null,
      turnId: null,
      spanId: newId(),
      parentSpanId: null,
      organizationApplication: null,
    },
    { spanIsNew: true },
  );
  if (!posted.ok) throw new Error('not posted');
  const place = { channelId: id, sequence: sequenceOf(posted.revision) };
  await channels.interactions.append(context(), place, [{ type: 'text', text: 'two' }], 'operator');
  await channels.interactions.complete(context(), place, null, 'operator', { metadata: null, invocationConfig: null });
  await channels.messages.edit(context(), place, [{ type: 'text', text: 'three' }], 'operator');
  await channels.messages.delete(context(), place, 'operator');
}

async function now(): Promise<Moment> {
  const { redis } = test.platform;
  const keys = await keysIn(redis, `${READ_MODELS_PREFIX}*`);
  const dumps = await Promise.all(keys.map((key) => nodeWith(redis, key).dumpBuffer(key)));
  return {
    keys: keys.map((key, index) => ({ key, dump: dumps[index] ?? Buffer.alloc(0) })),
    shown: await dumpReadModels(redis),
  };
}

async function setTo(revision: number): Promise<void> {
  const { redis } = test.platform;
  await flush(redis);
  await Promise.all(
    (moments[revision + 1]?.keys ?? []).map(({ key, dump }) => nodeWith(redis, key).restore(key, 0, dump)),
  );
}

/** Whether the read model is that of the revision that it names, and this is at least `least`. */
async function isWhole(least: number): Promise<boolean> {
  const { revision: key } = models.projector.keysOf({ category: 'channel', organizationId, id });
  const [revision = -1] = await late.revisions([key]);
  const shown = await dumpReadModels(test.platform.redis);
  return revision >= least && isDeepStrictEqual(shown, moments[revision + 1]?.shown);
}

const revisions = (): readonly number[] => [-1, ...log.keys()];

describe('what a process writes after Redis has changed', () => {
  it('is whole, of events from a feed', async () => {
    const wrong: object[] = [];
    let cases = 0;
    for (const seen of revisions()) {
      for (const found of revisions().filter((one) => one !== seen)) {
        // Later events are a gap, see the third test.
        for (let first = 0; first <= seen + 1 && first < log.length; first++) {
          for (let last = first; last < log.length; last++) {
            // Campaigns run all cases, other runs every third.
            if (++cases % 3 !== 0 && !IN_CAMPAIGN) continue;
            await setTo(seen);
            late.meanwhile = () => setTo(found);
            // Without what it has folded before.
            const { projector } = composeReadModels({ ...test.platform, readModel: late });
            await projector.applyStored(log.slice(first, last + 1), { repairLists: true });
            const isUnseen = late.meanwhile === null;
            late.meanwhile = null;
            if (isUnseen && !(await isWhole(last))) wrong.push({ seen, found, first, last });
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it('is whole, of events that it has appended', async () => {
    const wrong: object[] = [];
    const events = log.map((stored) => channelProjection.codec.decode(stored) as StreamEvent<ChannelStreamEvent>);
    const { fold } = channelProjection;
    for (const found of revisions()) {
      for (const first of log.keys()) {
        for (let last = first; last < log.length; last++) {
          await setTo(found);
          const [oldest, ...others] = events.slice(first, last + 1);
          if (oldest === undefined) continue;
          const before = foldEvents(fold, fold.initialState, events.slice(0, first));
          const after = foldEvents(fold, before, [oldest, ...others]);
          const run = { organizationId, id, before, after, events: [oldest, ...others] as const };
          await models.projector.applyAppended(channelProjection, run);
          if (!(await isWhole(last))) wrong.push({ found, first, last });
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it('is whole, of one entity that is brought up to date', async () => {
    const wrong: object[] = [];
    for (const seen of revisions()) {
      for (const found of revisions()) {
        await setTo(seen);
        late.meanwhile = () => setTo(found);
        await models.projector.catchUp('channel', organizationId, id);
        const isUnseen = late.meanwhile === null;
        late.meanwhile = null;
        if (isUnseen && !(await isWhole(log.length - 1))) wrong.push({ seen, found });
      }
    }
    expect(wrong).toEqual([]);
  });
});
