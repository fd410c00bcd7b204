/* The read models of a lookup are deleted again and again during the lookup. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

/** A read model that is emptied right before each query. */
class EmptiedReadModel extends ReadModel {
  timesEmptied = 0;
  empty: (() => Promise<unknown>) | undefined;

  override async lookUp(...args: Parameters<ReadModel['lookUp']>): ReturnType<ReadModel['lookUp']> {
    if (this.timesEmptied > 0) {
      this.timesEmptied -= 1;
      await this.empty?.();
    }
    return super.lookUp(...args);
  }
}

let test: TestPlatform;
let readModel: EmptiedReadModel;
let features: Features;
let store: CountingStore;
const organizationId = newId();
const channelId = newId();

beforeAll(async () => {
  test = await startTestPlatform();
  readModel = new EmptiedReadModel(test.platform.redis);
  store = new CountingStore(test.platform.store);
  features = composeFeatures({ ...test.platform, readModel, store });
  readModel.empty = () => features.state.clear();
  await features.channels.create(context({ commandId: channelId }), {
    id: channelId,
    ...PLAIN_CHANNEL,
    name: 'emptied',
  });
  expect(await post('taken')).toMatchObject({ ok: true });
});
afterAll(() => test.stop());

const context = (change: Partial<CommandContext> = {}): CommandContext => serviceCommand(organizationId, change);

const post = (spanId: string, complete = true) =>
  features.channels.interactions.post(
    context(),
    channelId,
    {
      participant: { type: 'system' },
      content: [],
      contentRole: 'channel_notification',
      complete,
      metadata: null,
      invocationConfig: null,
      turnId: null,
      spanId,
      parentSpanId: null,
      organizationApplication: null,
    },
    { spanIsNew: false },
  );

it('a command is not decided on the answers of an emptied Redis', async () => {
  readModel.timesEmptied = 2;
  expect(await post('taken')).toEqual({ ok: false, rejection: { reason: 'span_taken' } });
});

it('a command fails, and writes nothing, when its lookups cannot be answered', async () => {
  readModel.timesEmptied = Infinity;
  await expect(post('taken')).rejects.toMatchObject({ code: 'not_caught_up' });
  readModel.timesEmptied = 0;
  expect(await post('taken')).toEqual({ ok: false, rejection: { reason: 'span_taken' } });
});

it('Parley completes what this process knows as incomplete without a look-up, a client does not', async () => {
  const posted = await post('open', false);
  if (!posted.ok) throw new Error('the post was refused');
  readModel.timesEmptied = Infinity;
  const { interactions } = features.channels;
  const text = [{ type: 'text', text: 'done' }];
  await expect(interactions.fail(context(), posted.ref, 'no')).rejects.toMatchObject({ code: 'not_caught_up' });
  const actor = { type: 'system', id: 'reactor:agent-runs' } as const;
  expect(await interactions.complete(context({ actor }), posted.ref, text, 'operator')).toMatchObject({ ok: true });
  readModel.timesEmptied = 0;
  const again = await interactions.complete(context(), posted.ref, text, 'operator');
  expect(again).toEqual({ ok: false, rejection: { reason: 'complete_already' } });
});

it("a command on another organization's channel does not read through that channel's events", async () => {
  for (let n = 0; n < 60; n++) await post(`span-${n}`);
  store.eventsRead = 0;
  const place = { channelId, sequence: 2 as never };
  const refused = await features.channels.interactions.fail(context({ organizationId: newId() }), place, '');
  expect(refused).toEqual({ ok: false, rejection: { reason: 'not_found' } });
  expect(store.eventsRead).toBeLessThan(20);
});
