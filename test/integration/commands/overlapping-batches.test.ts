/* A batch of commands is decided and appended while the batch before it is applied to the read model. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { AppendResult, EventStore } from '#libs/platform/eventstore/index.ts';
import { ReadModel, type EntityWrite } from '#libs/platform/readmodel/index.ts';
import type { ApplyOutcome } from '#libs/platform/readmodel/read-model.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

/** A write to the read model that waits for the test. */
interface HeldWrite {
  readonly first: number;
  /** Lets it happen, or fail. */
  readonly release: (failure?: Error) => void;
}

/** The read model of Redis, whose writes wait for the test after {@link hold}. */
class HeldReadModel extends ReadModel {
  #isHolding = false;
  /** The writes that have begun since the last `hold`, in order. */
  readonly held: HeldWrite[] = [];
  lookUps = 0;

  hold(): void {
    this.#isHolding = true;
    this.held.length = 0;
  }

  /** The `nth` write of those that have begun. */
  begun(nth: number): Promise<HeldWrite> {
    return eventually(() => this.held[nth] ?? Promise.reject(new Error(`write ${nth} has not begun`)));
  }

  /** Lets the writes that wait, and all later ones, happen. */
  release(): void {
    this.#isHolding = false;
    for (const { release } of this.held) release();
  }

  override async apply(writes: readonly EntityWrite[]): Promise<ApplyOutcome[]> {
    if (this.#isHolding) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const release = (failure?: Error): void => (failure === undefined ? resolve() : reject(failure));
      this.held.push({ first: Number(writes[0]?.first), release });
      await promise;
    }
    return super.apply(writes);
  }

  override lookUp(...args: Parameters<ReadModel['lookUp']>): ReturnType<ReadModel['lookUp']> {
    this.lookUps++;
    return super.lookUp(...args);
  }
}

/** A store whose next append can be refused. */
class RefusingStore extends CountingStore {
  refusal: Error | null = null;

  override append(...args: Parameters<EventStore['append']>): Promise<AppendResult> {
    const { refusal } = this;
    this.refusal = null;
    return refusal === null ? super.append(...args) : Promise.reject(refusal);
  }
}

let test: TestPlatform;
let readModel: HeldReadModel;
let store: RefusingStore;
let features: Features;
let id: string;
/** The names of the commands in the order of their answers, with the revision that the read model had then. */
let answered: [name: string, revision: number][];
const organizationId = newId();

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.stop());

beforeEach(async () => {
  readModel = new HeldReadModel(test.platform.redis);
  store = new RefusingStore(test.platform.store);
  features = composeFeatures({ ...test.platform, readModel, store });
  answered = [];
  const command = serviceCommand(organizationId);
  id = command.commandId;
  await features.channels.create(command, { id, ...PLAIN_CHANNEL });
  readModel.hold();
});

async function appliedRevision(): Promise<number> {
  const { revision } = features.projector.keysOf({ category: 'channel', organizationId, id });
  return Number((await readModel.revisions([revision]))[0]);
}

/** Its own answer is one of `answered`, also that of an error. */
function rename(name: string): Promise<unknown> {
  const result = features.channels.update(serviceCommand(organizationId), id, { name });
  return result.finally(async () => void answered.push([name, await appliedRevision()]));
}

function post(spanId: string) {
  const interaction = {
    participant: { type: 'system' as const },
    content: [],
    contentRole: 'channel_notification' as const,
    complete: true,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    spanId,
    parentSpanId: null,
    organizationApplication: null,
  };
  return features.channels.interactions.post(serviceCommand(organizationId), id, interaction, { spanIsNew: false });
}

const logged = async (): Promise<unknown[]> =>
  (await readLog(test.eventStore.url, `channel-${id}`)).map(({ data }) => data['name']);

it('appends a batch while the one before it is applied, and applies and answers both in order', async () => {
  const first = rename('first');
  const write = await readModel.begun(0);
  const second = rename('second');
  await eventually(async () => expect(await logged()).toEqual(['plain', 'first', 'second']));
  expect([answered, readModel.held.length]).toEqual([[], 1]);
  write.release();
  expect(await first).toMatchObject({ revision: 1 });
  (await readModel.begun(1)).release();
  expect(await second).toMatchObject({ revision: 2 });
  expect(answered).toEqual([
    ['first', 1],
    ['second', 2],
  ]);
});

it('lets one batch wait to be applied, and appends no third one', async () => {
  const first = rename('first');
  await readModel.begun(0);
  const second = rename('second');
  await eventually(async () => expect(await logged()).toHaveLength(3));
  const third = rename('third');
  expect(await logged()).toHaveLength(3);
  readModel.held[0]?.release();
  await first;
  await eventually(async () => expect(await logged()).toHaveLength(4));
  expect(answered).toEqual([['first', 1]]);
  readModel.release();
  await Promise.all([second, third]);
  expect(answered.map(([name]) => name)).toEqual(['first', 'second', 'third']);
});

it('returns while it is being applied to a caller that waits for that itself', async () => {
  let isApplied = false;
  const { promise: applied, resolve } = Promise.withResolvers<void>();
  const onAppended = (applying: Promise<void>): void => {
    void applying.then(() => (isApplied = true)).then(() => resolve());
  };
  const early = features.channels.update({ ...serviceCommand(organizationId), onAppended }, id, { name: 'early' });
  const later = rename('later');
  expect(await early).toMatchObject({ ok: true, revision: 1 });
  expect([readModel.held.map(({ first }) => first), isApplied, answered]).toEqual([[1], false, []]);
  readModel.release();
  await Promise.all([applied, later]);
  expect(answered).toEqual([['later', 2]]);
});

it('answers a command that has nothing to do after those that it was decided on', async () => {
  const first = rename('same');
  const write = await readModel.begun(0);
  const { reads } = store;
  const second = rename('same');
  // It is decided on the end of the stream.
  await eventually(() => expect(store.reads).toBeGreaterThan(reads));
  write.release();
  await Promise.all([first, second]);
  expect(answered).toEqual([
    ['same', 1],
    ['same', 1],
  ]);
});

it('fills the gap when the batch before could not be applied', async () => {
  const first = rename('first');
  const write = await readModel.begun(0);
  const second = rename('second');
  await eventually(async () => expect(await logged()).toHaveLength(3));
  write.release(storeUnavailable('Redis'));
  await first;
  readModel.release();
  await second;
  expect(answered).toEqual([
    ['first', 0],
    ['second', 2],
  ]);
});

it('looks up what the batch before has written once that is applied', async () => {
  const first = post('span');
  const write = await readModel.begun(0);
  const { lookUps } = readModel;
  const second = post('span');
  await eventually(() => expect(readModel.lookUps).toBeGreaterThan(lookUps));
  write.release();
  expect(await Promise.all([first, second])).toMatchObject([
    { ok: true, revision: 1 },
    { ok: false, rejection: { reason: 'span_taken' } },
  ]);
});

it('an append that fails does not affect the batch before, nor the next one', async () => {
  const first = rename('first');
  const write = await readModel.begun(0);
  store.refusal = storeUnavailable('the event store');
  await expect(rename('refused')).rejects.toMatchObject({ code: 'store_unavailable' });
  const third = rename('third');
  await eventually(async () => expect(await logged()).toEqual(['plain', 'first', 'third']));
  expect(answered).toEqual([['refused', 0]]);
  write.release();
  readModel.release();
  expect(await Promise.all([first, third])).toMatchObject([{ revision: 1 }, { revision: 2 }]);
});
