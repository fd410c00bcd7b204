/* Results of repeated reads are kept in memory while their channel does not change, whichever process changes it. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

import type { InteractionRef } from '#libs/features/channels/index.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { composeUnapplied } from '#test/support/unapplied-writer.ts';

const FILTER = { order: 'asc', includeIncomplete: true, includeToolCallUpdates: false } as const;
const FIRST_PAGE = { size: 100, offset: 0, after: null };
const ada = { type: 'user', id: newId(), name: 'Ada' } as const;

let test: TestPlatform;
/** Another process than the one that writes. */
let gateway: Features;
let writer: Features;
const organizationId = newId();
let root: InteractionRef;
let below: InteractionRef;

beforeAll(async () => {
  test = await startTestPlatform();
  await completeReadModels(composeFeatures(test.platform));
});
afterAll(() => test.stop());

beforeEach(async () => {
  gateway = composeFeatures(test.platform);
  writer = composeFeatures(test.platform);
  const channelId = newId();
  await writer.channels.create(command(channelId), { id: channelId, ...PLAIN_CHANNEL, name: 'lab' });
  root = await post(writer, channelId, 'root', null);
  below = await post(writer, channelId, 'below', 'root');
});

async function completeReadModels({ state }: Features): Promise<void> {
  await state.save(await state.begin(), null, true);
}

const command = (commandId = newId()) => serviceCommand(organizationId, { commandId });

async function post(by: Features, channelId: string, spanId: string, parentSpanId: string | null) {
  const interaction = {
    participant: { type: 'system' as const },
    content: [{ type: 'text', text: spanId }],
    contentRole: 'user_message' as const,
    complete: false,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    spanId,
    parentSpanId,
    organizationApplication: null,
  };
  const result = await by.channels.interactions.post(command(), channelId, interaction, { spanIsNew: false });
  if (!result.ok) throw new Error(result.rejection.reason);
  return { channelId, sequence: sequenceOf(result.revision) };
}

/** The results of the three reads that are kept. */
function read({ channels: { queries } }: Features, userId = ada.id, organization = organizationId) {
  const shown = { reader: { userId }, includeIncomplete: true, includeToolCallUpdates: false };
  return Promise.all([
    queries.interaction(organization, below, shown),
    queries.nested(organization, root, shown),
    queries.list(organization, below.channelId, FILTER, FIRST_PAGE, shown.reader),
  ]);
}

/** A result is kept at the third read of a channel that does not change, one of a single interaction just after it. */
async function readOften(features: Features): ReturnType<typeof read> {
  for (let times = 0; times < 5; times++) await read(features);
  return read(features);
}

/** Round trips to Redis that the caller of a read waits for, and commands that are sent in them. */
async function costOf(reads: () => Promise<unknown>): Promise<{ readonly trips: number; readonly commands: number }> {
  const { redis } = test.platform;
  const { send, values, call } = redis;
  let [trips, commands, waiting] = [0, 0, 0];
  async function counted<T>(reply: Promise<T>, sent = 1): Promise<T> {
    if (waiting++ === 0) trips += 1;
    commands += sent;
    return reply.finally(() => (waiting -= 1));
  }
  redis.send = (key, work) => counted(send.call(redis, key, work) as ReturnType<typeof work>);
  redis.values = (keys) => counted(values.call(redis, keys));
  redis.call = (calls) => counted(call.call(redis, calls), calls.length);
  await reads().finally(() => Object.assign(redis, { send, values, call }));
  return { trips, commands };
}

const tripsOf = async (reads: () => Promise<unknown>): Promise<number> => (await costOf(reads)).trips;

const textOf = (found: Awaited<ReturnType<typeof read>>): string[] =>
  found.map((one) => {
    if (one === null || Buffer.isBuffer(one)) return String(one);
    const { items, sent: _sent, ...rest } = one;
    return [JSON.stringify(rest), ...items].join('\n');
  });

/** What a repeated read shares with the ones before it: of a page, its items. */
const memoryOf = (one: Awaited<ReturnType<typeof read>>[number] | undefined): unknown =>
  one === null || one === undefined || Buffer.isBuffer(one) ? one : one.items;

it('are the same objects while the channel does not change', async () => {
  const first = await read(gateway);
  const kept = await readOften(gateway);
  expect(textOf(kept)).toEqual(textOf(first));
  const again = await read(gateway);
  for (const [index, one] of again.entries()) expect(memoryOf(one)).toBe(memoryOf(kept[index]));
  expect(gateway.reader.kept.size).toBe(3);
  const bytes = Buffer.byteLength(textOf(kept).join(''));
  expect(gateway.reader.kept.bytes).toBeGreaterThan(bytes / 2);
});

it('are read again after each change by another process', async () => {
  const at = () => command();
  const { channels } = writer;
  const changes = [
    () => channels.interactions.append(at(), below, [{ type: 'text', text: 'more' }], 'operator'),
    () => channels.reactions.react(at(), below, ada, '👍'),
    () => channels.interactions.complete(at(), below, null, 'operator'),
    () => channels.reactions.react(at(), below, { type: 'agent', id: newId(), name: 'Otto' }, '👍'),
    () => channels.reactions.withdraw(at(), below, ada, '👍'),
    () => post(writer, below.channelId, 'beside', 'root'),
    // Fails the interactions that are incomplete.
    () => channels.archive(at(), below.channelId),
  ];
  for (const change of changes) {
    const before = textOf(await readOften(gateway));
    expect(await change()).not.toMatchObject({ ok: false });
    const after = textOf(await read(gateway));
    expect(after).toEqual(textOf(await read(composeFeatures(test.platform))));
    expect(after).not.toEqual(before);
  }
});

it('cost no more round trips than first reads while the channel changes between any two', async ({ skip }) => {
  skip(!test.platform.redis.isOneServer, 'the nodes of a cluster answer at different times');
  const shown = { reader: { userId: ada.id }, includeIncomplete: true, includeToolCallUpdates: false };
  const change = () => post(writer, below.channelId, newId(), null);
  const trips = async ({ channels: { queries } }: Features): Promise<number[]> => [
    await tripsOf(() => queries.interaction(organizationId, below, shown)),
    await tripsOf(() => queries.nested(organizationId, root, shown)),
    await tripsOf(() => queries.list(organizationId, below.channelId, FILTER, FIRST_PAGE, shown.reader)),
  ];
  await writer.channels.interactions.complete(command(), below, null, 'operator');
  const first = await trips(gateway);
  expect(first[0]).toBe(1);
  for (let times = 0; times < 5; times++) {
    await change();
    expect(await trips(gateway)).toEqual(first);
  }
  expect(gateway.reader.kept.bytes).toBe(3 * 1024);
  await readOften(gateway);
  expect(await trips(gateway)).toEqual([1, 1, 1]);
  // Once, the look at what was kept is in vain.
  await change();
  expect(await trips(gateway)).toEqual([2, first[1], 3]);
  await change();
  expect(await trips(gateway)).toEqual(first);
});

it('of a page are two round trips, with a command for what it shows, its documents, and its revision', async ({
  skip,
}) => {
  skip(!test.platform.redis.isOneServer, 'the nodes of a cluster answer at different times');
  const { queries } = gateway.channels;
  const { channelId } = below;
  const filters = [
    FILTER,
    { ...FILTER, includeIncomplete: false },
    { ...FILTER, includeIncomplete: false, endsBeforeIncomplete: true },
    { ...FILTER, order: 'desc', contentRole: 'user_message', afterSequence: 1 },
    { ...FILTER, beforeSequence: 900, turnId: 'turn' },
  ] as const;
  await writer.channels.interactions.complete(command(), below, null, 'operator');
  await writer.channels.interactions.complete(command(), root, null, 'operator');
  for (const [nth, filter] of filters.entries()) {
    const page = { ...FIRST_PAGE, offset: nth % 2 };
    expect(await tripsOf(() => queries.list(organizationId, channelId, filter, page, { userId: ada.id }))).toBe(2);
  }
  const fresh = composeFeatures(test.platform).channels.queries;
  const cold = () => fresh.list(organizationId, channelId, FILTER, FIRST_PAGE, { userId: ada.id });
  expect(await costOf(cold)).toEqual({ trips: 2, commands: 3 });
  // Its marks cost a command more, and what is incomplete another one.
  await writer.channels.reactions.react(command(), below, ada, '👍');
  await post(writer, channelId, newId(), null);
  expect(await costOf(cold)).toEqual({ trips: 2, commands: 5 });
});

it('are those of the reader, and of no other organization', async () => {
  await writer.channels.reactions.react(command(), below, ada, '👍');
  await readOften(gateway);
  expect(textOf(await read(gateway)).every((one) => one.includes('reacted_by_me":true'))).toBe(true);
  for (let times = 0; times < 3; times++) {
    expect(textOf(await read(gateway, newId())).some((one) => one.includes('reacted_by_me":true'))).toBe(false);
    expect(await read(gateway, ada.id, newId())).toEqual([null, null, null]);
  }
});

it('are not used while the read models lack events that were appended', async () => {
  const kept = await readOften(gateway);
  // As after the loss of what Redis had last written: the revision is the old one, and the mark is missing.
  await post(composeUnapplied(test.platform), below.channelId, 'late', 'root');
  await test.platform.redis.remove([CHANNEL_PROJECTION_KEYS.complete]);
  const [, nested, list] = await read(gateway);
  expect(String(nested)).toContain('late');
  expect(list?.total).toBe((kept[2]?.total ?? 0) + 1);
  // Nothing is kept, because a read may have found only a part of what is being built.
  const [one] = await readOften(gateway);
  expect((await read(gateway))[0]).not.toBe(one);
  await completeReadModels(gateway);
  expect((await readOften(gateway))[0]).toBe((await read(gateway))[0]);
});

it('are not kept if the read models were deleted meanwhile', async () => {
  const { queries } = gateway.channels;
  const one = () => queries.interaction(organizationId, below, { reader: { userId: ada.id }, includeIncomplete: true });
  await one();
  await read(gateway);
  const { redis } = test.platform;
  const send = redis.send.bind(redis);
  redis.send = async (key, work) => {
    const reply = await send(key, work);
    await redis.remove([CHANNEL_PROJECTION_KEYS.complete]);
    return reply;
  };
  await read(gateway).finally(() => (redis.send = send));
  // The answers to what the gateway asks to keep results have arrived before these.
  for (let times = 0; times < 2; times++) await one();
  expect(gateway.reader.kept.size).toBe(3);
  expect(gateway.reader.kept.bytes).toBe(3 * 1024);
  await completeReadModels(gateway);
});
