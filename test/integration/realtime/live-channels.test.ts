/* A channel in one process: whatever its topic does, every subscriber gets an exact suffix of the log. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { RealtimeNode } from '#libs/features/realtime/index.ts';
import type { LiveStream } from '#libs/platform/live/live-stream.ts';
import { LOSSY_BYTES, SLOW_BYTES, Subscriber } from '#libs/platform/live/subscriber.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import {
  encodeEvent,
  encodeHead,
  encodeValue,
  EphemeralValues,
  eventFrame,
  FRAME_FLAG,
  channelTopic,
  snapshotJson,
  CLOSE,
  type Grant,
  LiveNode,
} from '#libs/platform/live/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { payloadOf } from '#libs/platform/websocket/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { contextOf, newChannel } from '#test/support/realtime/channel-life.ts';
import { nodeWith } from '#test/support/redis-commands.ts';

let test: TestPlatform<TestRedis>;
let features: Features;
let node: RealtimeNode;
const metrics = createMetrics({ processMetrics: false });
const subscribers: Recorder[] = [];

beforeAll(async () => {
  test = await startTestPlatform({ redis: 'own' });
  features = composeFeatures(test.platform);
  node = new RealtimeNode(
    // Without sweeps, which would find messages that the topic has lost.
    new LiveNode({ ...test.platform, metrics }, { heads: async (streams) => streams.map(() => 0) }),
    features.realtime,
  );
});
afterEach(() => {
  for (const subscriber of subscribers.splice(0)) subscriber.close();
});
afterAll(async () => {
  await node.stop();
  await test.stop();
});

/** Records its frames, and reports the unsent bytes that a test sets. */
class Recorder extends Subscriber {
  readonly format = 'websocket';
  readonly grant: Grant;
  readonly include: number;
  readonly frames: Record<string, unknown>[] = [];
  bytes = 0;
  readonly #channel: LiveStream;
  #unsentBytes = 0;
  #drained = Promise.withResolvers<void>();
  isOpen = true;
  closedWith: number | undefined;

  constructor(channel: LiveStream, include = 0) {
    super();
    this.#channel = channel;
    this.include = include;
    this.grant = {
      organizationId: channel.organizationId,
      channelId: channel.id,
      principalType: 'service',
      principalId: 's',
      keyId: 'k',
      scopes: [],
      isMember: false,
      takesPart: false,
      expiresAtMs: null,
    };
    subscribers.push(this);
  }

  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  set unsentBytes(bytes: number) {
    this.#unsentBytes = bytes;
    if (bytes > 0) return;
    this.#drained.resolve();
    this.#drained = Promise.withResolvers();
  }

  write(bytes: Buffer): void {
    this.bytes += bytes.length;
    for (let rest = bytes; rest.length > 0;) {
      const length = payloadLength(rest);
      this.frames.push(JSON.parse(payloadOf(rest).toString('utf8', 0, length)));
      rest = rest.subarray(rest.length - payloadOf(rest).length + length);
    }
  }

  drained(): Promise<void> {
    return this.#unsentBytes === 0 ? Promise.resolve() : this.#drained.promise;
  }

  caughtUp(seq: number): void {
    this.frames.push({ frame: 'caught_up', seq });
  }

  close(code = 1000): void {
    this.isOpen = false;
    this.closedWith = code;
    this.#channel.leave(this);
  }

  ping(): void {}
  checkPong(): void {}
  destroy(): void {}
  closed = (): Promise<void> => Promise.resolve();

  get received(): string[] {
    return this.frames.map(({ frame, seq, text }) => `${String(frame)} ${String(seq ?? text)}`);
  }
}

function payloadLength(frame: Buffer): number {
  const short = (frame[1] ?? 0) & 0x7f;
  return short === 127 ? Number(frame.readBigUInt64BE(2)) : short === 126 ? frame.readUInt16BE(2) : short;
}

type Place = { readonly organizationId: string; readonly channelId: string };

async function open({ organizationId, channelId }: Place): Promise<LiveStream> {
  const channel = await node.open(organizationId, channelId);
  if (channel === null) throw new Error('there is no such channel');
  return channel;
}

/** @param after its position; default: the head */
async function subscribe(channel: LiveStream, { include = 0, after = channel.head as number } = {}): Promise<Recorder> {
  const subscriber = new Recorder(channel, include);
  subscriber.position = after;
  channel.join(subscriber);
  await eventually(() => subscriber.received.some((one) => one.startsWith('caught_up')) && !subscriber.lacksValues);
  return subscriber;
}

let names = 0;
const MIB = 1024 * 1024;

const renamed = () => ({ type: 'ChannelRenamed.v1', data: { name: `name ${++names}` } });

/** Appends events without publishing them. */
async function append(
  { organizationId, channelId }: Place,
  count: number,
  eventAt: (n: number) => { type: string; data: object } = renamed,
): Promise<void> {
  const head = (await features.realtime.log.head(organizationId, channelId)) ?? 0;
  const { commandId, at, actor } = contextOf(organizationId, newId(), 0);
  const metadata = { at, organizationId, actor, commandId, $correlationId: commandId, $causationId: commandId };
  const events = Array.from({ length: count }, (_, n) => ({ id: newId(), ...eventAt(n), metadata }));
  // Half of the limit of an append.
  const most = Math.floor(MIB / 2 / JSON.stringify(events[0]).length);
  for (let from = 0; from < count; from += most) {
    const some = events.slice(from, from + most);
    await test.platform.store.append(`channel-${channelId}`, streamRevision(head - 1 + from), some);
  }
}

const publish = ({ organizationId, channelId }: Place, message: string): Promise<unknown> =>
  nodeWith(test.platform.redis, channelTopic(organizationId, channelId)).spublish(
    channelTopic(organizationId, channelId),
    message,
  );

/** The messages of the events after a sequence. */
async function messagesOf({ organizationId, channelId }: Place, after: number): Promise<string[]> {
  const messages: string[] = [];
  const from = sequenceOf(streamRevision(after - 1));
  for await (const page of features.realtime.log.framesAfter(organizationId, channelId, from)) {
    messages.push(...page.map(encodeEvent));
  }
  return messages;
}

const head = (sequence: number): string => encodeHead(sequenceOf(streamRevision(sequence - 1)));
const events = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, n) => `event ${first + n}`);
const filled = async (): Promise<number> =>
  Number(/^parley_realtime_frames_filled_total (\d+)/m.exec(await metrics.scrape())?.[1] ?? 0);

it('a channel of another organization is not opened', async () => {
  const { organizationId, channelId } = await newChannel(features);
  expect(await node.open(organizationId, newId())).toBeNull();
  expect(await node.open(newId(), channelId)).toBeNull();
});

it('events that are duplicated, reordered or lost are received once and in order', async () => {
  const place = await newChannel(features);
  const subscriber = await subscribe(await open(place));
  await append(place, 6);
  const [two = '', three = '', , five = '', six = ''] = await messagesOf(place, 1);
  // The fourth is lost, and so is the seventh, which only a head announces.
  for (const message of [three, two, two, five, six, three, head(7), head(3)]) await publish(place, message);
  await eventually(() => subscriber.received.length >= 7);
  expect(subscriber.received).toEqual(['caught_up 1', ...events(2, 7)]);
  expect(await filled()).toBeGreaterThan(0);
});

it('messages of several lines, and unknown lines, lose no event', async () => {
  const place = await newChannel(features);
  const subscriber = await subscribe(await open(place));
  await append(place, 3);
  const messages = await messagesOf(place, 1);
  const before = await filled();
  await publish(place, ['Y 1', messages[0], 'E x', '', messages[1], 'Z', messages[2]].join('\n'));
  await eventually(() => subscriber.received.length === 4);
  expect(subscriber.received).toEqual(['caught_up 1', ...events(2, 4)]);
  expect(await filled()).toBe(before);
});

it('a subscriber that is far behind gets pages of the log and the events that are published meanwhile, once and in order', async () => {
  const place = await newChannel(features);
  await append(place, 1_300);
  const channel = await open(place);
  const behind = Array.from({ length: 4 }, (_, n) => {
    const subscriber = new Recorder(channel);
    subscriber.position = n * 100;
    channel.join(subscriber);
    return subscriber;
  });
  await append(place, 700);
  for (const message of await messagesOf(place, 1_301)) await publish(place, message);
  const has = (subscriber: Recorder, start: string): boolean =>
    subscriber.received.some((one) => one.startsWith(start));
  // `caught_up` comes last where the log is read more slowly than the events are published.
  await eventually(() => behind.every((one) => has(one, 'event 2001') && has(one, 'caught_up')));
  for (const [n, subscriber] of behind.entries()) {
    expect(subscriber.received.filter((one) => one.startsWith('event'))).toEqual(events(n * 100 + 1, 2_001));
  }
}, 30_000);

it('subscribers that read nothing hold a bounded amount of memory together, and all continue once they read', async () => {
  const place = await newChannel(features);
  const data = {
    participant: { type: 'system' },
    content: [{ type: 'text', text: 'x'.repeat(8_000) }],
    contentRole: 'agent_response',
    complete: true,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    parentSpanId: null,
    depth: 1,
    organizationApplication: null,
  };
  await append(place, 150, (n) => ({ type: 'InteractionPosted.v1', data: { ...data, spanId: `span-${n}` } }));
  const channel = await open(place);
  const crowd = Array.from({ length: 80 }, () => {
    const subscriber = new Recorder(channel);
    subscriber.unsentBytes = 1;
    channel.join(subscriber);
    return subscriber;
  });
  await eventually(() => crowd.every(({ frames }) => frames.length > 0), { timeoutMs: 60_000 });
  const held = crowd.reduce((sum, { bytes }) => sum + bytes, 0);
  expect(held).toBeGreaterThan(32 * MIB);
  expect(held).toBeLessThan(70 * MIB);
  for (const subscriber of crowd) subscriber.unsentBytes = 0;
  await eventually(() => crowd.every(({ frames }) => frames.length >= 152), { timeoutMs: 60_000 });
  for (const { received } of crowd) expect(received).toEqual([...events(1, 151), 'caught_up 151']);
}, 150_000);

it('a resume beyond the events of this process makes it catch up; one beyond the log is refused', async () => {
  const place = await newChannel(features);
  const channel = await open(place);
  const subscriber = await subscribe(channel);
  await append(place, 3);
  expect(await channel.reaches(5)).toBe(false);
  expect(await channel.reaches(4)).toBe(true);
  expect(channel.head).toBe(4);
  await eventually(() => subscriber.received.length === 4);
  expect(subscriber.received).toEqual(['caught_up 1', ...events(2, 4)]);
});

describe('a frame that a subscriber does not include', () => {
  const { nested, incomplete, ephemeral } = FRAME_FLAG;
  const eventMessage = (sequence: number, flags: number) =>
    encodeEvent(
      eventFrame(
        sequenceOf(streamRevision(sequence - 1)),
        { at: '2026-01-01T00:00:00.000Z', actor: null },
        {
          type: 'interaction.posted',
          json: '{"text":"said"}',
          flags,
        },
      ),
    );

  it('is sent without data if it is an event, and otherwise not at all', async () => {
    const place = await newChannel(features);
    const channel = await open(place);
    const plain = await subscribe(channel);
    const all = await subscribe(channel, { include: nested | incomplete | ephemeral });
    const whole = await subscribe(channel, { include: incomplete });
    const value = (flags: number, text: string) =>
      encodeValue({ flags, key: 'k', json: `{"frame":"x","text":"${text}"}` });
    await publish(place, eventMessage(2, incomplete));
    await publish(place, value(ephemeral, 'typing'));
    await publish(place, value(incomplete | nested, 'below'));
    await publish(place, value(incomplete, 'delta'));
    await publish(place, eventMessage(3, nested | incomplete));
    await publish(place, eventMessage(4, 0));
    await eventually(() => [plain, all, whole].every(({ received }) => received.at(-1) === 'event 4'));
    const dataOf = ({ frames }: Recorder) => frames.filter(({ frame }) => frame === 'event').map(({ data }) => data);
    const said = { text: 'said' };
    expect(plain.received).toEqual(['caught_up 1', ...events(2, 4)]);
    expect(dataOf(plain)).toEqual([null, null, said]);
    expect(all.received).toEqual(['caught_up 1', 'event 2', 'x typing', 'x below', 'x delta', 'event 3', 'event 4']);
    expect(dataOf(all)).toEqual([said, said, said]);
    expect(whole.received).toEqual(['caught_up 1', 'event 2', 'x delta', 'event 3', 'event 4']);
    expect(dataOf(whole)).toEqual([said, null, said]);
  });
});

describe('a subscriber that reads slowly', () => {
  it('misses no event, and gets the current values once it has read', async () => {
    const place = await newChannel(features);
    const { organizationId, channelId } = place;
    const channel = await open(place);
    const slow = await subscribe(channel, { include: FRAME_FLAG.ephemeral });
    const typing = new EphemeralValues(test.platform.redis, { name: 'test', keyPrefix: 'test', ttlMs: 60_000, max: 3 });
    slow.unsentBytes = LOSSY_BYTES + 1;
    await typing.put(organizationId, channelId, { name: 'a', json: '{"n":1}' });
    await append(place, 1);
    for (const message of await messagesOf(place, 1)) await publish(place, message);
    await eventually(() => slow.received.includes('event 2'));
    expect(slow.received).toEqual(['caught_up 1', 'event 2']);
    expect(slow.lacksValues).toBe(true);
    slow.unsentBytes = 0;
    await eventually(() => !slow.lacksValues);
    await typing.put(organizationId, channelId, { name: 'a', json: '{"n":2}' });
    await eventually(() => slow.frames.at(-1)?.['frame'] === 'ephemeral');
    expect(slow.received.filter((one) => one.startsWith('event'))).toEqual(['event 2']);
  });

  it('is not too slow because of large current values', async () => {
    const place = await newChannel(features);
    const json = snapshotJson('1', 'x'.repeat(SLOW_BYTES));
    const values = { current: () => Promise.resolve([{ flags: FRAME_FLAG.incomplete, key: 'draft:1', json }]) };
    const heads = async (streams: readonly unknown[]) => streams.map(() => 0);
    const parts = { ...test.platform, metrics: createMetrics({ processMetrics: false }) };
    const other = new RealtimeNode(new LiveNode(parts, { heads }), { ...features.realtime, values: [values] });
    const channel = await other.open(place.organizationId, place.channelId);
    if (channel === null) throw new Error('there is no such channel');
    const subscriber = await subscribe(channel, { include: FRAME_FLAG.incomplete });
    subscriber.unsentBytes = SLOW_BYTES + 1_000;
    await append(place, 2);
    const [first = '', second = ''] = await messagesOf(place, 1);
    await publish(place, first);
    await eventually(() => subscriber.received.at(-1) === 'event 2');
    expect(subscriber.isOpen).toBe(true);
    subscriber.unsentBytes = 3 * SLOW_BYTES;
    await publish(place, second);
    await eventually(() => !subscriber.isOpen);
    expect(subscriber.closedWith).toBe(CLOSE.slow);
    await other.stop();
  });

  it('is closed above the limit of unsent bytes, without effect on others', async () => {
    const place = await newChannel(features);
    const channel = await open(place);
    const [slow, quick] = [await subscribe(channel), await subscribe(channel)];
    slow.unsentBytes = SLOW_BYTES + 1;
    await append(place, 1);
    for (const message of await messagesOf(place, 1)) await publish(place, message);
    await eventually(() => quick.received.includes('event 2'));
    expect(slow.closedWith).toBe(CLOSE.slow);
    expect(slow.received).toEqual(['caught_up 1']);
    expect(quick.closedWith).toBeUndefined();
  });
});

it('a topic is subscribed to while the channel has subscribers, and unsubscribed soon after', async () => {
  const place = await newChannel(features);
  const { organizationId, channelId } = place;
  const count = async (): Promise<unknown> =>
    (await test.redis.command('PUBSUB', 'SHARDNUMSUB', channelTopic(organizationId, channelId))) as unknown;
  const subscriber = await subscribe(await open(place));
  expect(await count()).toEqual([channelTopic(organizationId, channelId), 1]);
  subscriber.close();
  await eventually(async () => expect(await count()).toEqual([channelTopic(organizationId, channelId), 0]));
});

it('a channel cannot be joined while its opening may still fail', async () => {
  const place = await newChannel(features);
  const reads: PromiseWithResolvers<void>[] = [];
  const { log } = features.realtime;
  const late = new RealtimeNode(
    new LiveNode(
      { ...test.platform, metrics: createMetrics({ processMetrics: false }) },
      { heads: async (streams) => streams.map(() => 0) },
    ),
    {
      ...features.realtime,
      log: {
        category: log.category,
        head: (organizationId, channelId) => log.head(organizationId, channelId),
        refuseDeleted: (...asked) => log.refuseDeleted(...asked),
        async *framesAfter(organizationId, channelId, after) {
          const read = Promise.withResolvers<void>();
          reads.push(read);
          await read.promise;
          yield* log.framesAfter(organizationId, channelId, after);
        },
      },
    },
  );
  const { organizationId, channelId } = place;
  const failing = late.open(organizationId, channelId);
  await eventually(() => reads.length === 1);
  expect(late.openOne(organizationId, channelId)).toBe(null);
  reads[0]?.reject(storeUnavailable('the event store'));
  await expect(failing).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(late.live.streams.size).toBe(0);
  const opening = late.open(organizationId, channelId);
  await eventually(() => reads.length === 2);
  reads[1]?.resolve();
  expect(await opening).toBe(late.openOne(organizationId, channelId));
  await late.stop();
});

it('an event that is published while the topic is interrupted, during the opening, is found without delay', async () => {
  const place = await newChannel(features);
  const { organizationId, channelId } = place;
  const { log } = features.realtime;
  const read = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const late = new RealtimeNode(
    new LiveNode(
      { ...test.platform, metrics: createMetrics({ processMetrics: false }) },
      { heads: async (streams) => streams.map(() => 2) },
    ),
    {
      ...features.realtime,
      log: {
        category: log.category,
        head: (...asked) => log.head(...asked),
        refuseDeleted: (...asked) => log.refuseDeleted(...asked),
        async *framesAfter(...asked) {
          yield* log.framesAfter(...asked);
          read.resolve();
          await release.promise;
        },
      },
    },
  );
  const opening = late.open(organizationId, channelId);
  await read.promise;
  await append(place, 1);
  let subscriptions = 0;
  const other = test.platform.topics.subscribe(channelTopic(organizationId, channelId), {
    onMessage: () => undefined,
    onListening: () => void (subscriptions += 1),
    onInterrupted: () => undefined,
  });
  await eventually(() => subscriptions === 1);
  await test.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await eventually(() => subscriptions === 2);
  release.resolve();
  const channel = await opening;
  // The regular sweep would find it after 15 seconds.
  await eventually(() => expect(channel?.head).toBe(2), { timeoutMs: 10_000 });
  other.stop();
  await late.stop();
});

const keptBytesIn = (metrics: string) => Number(/^parley_realtime_kept_bytes (\d+)/m.exec(metrics)?.[1]);

it('events arrive once and in order where no memory is left to keep them, live and after a reconnection', async () => {
  const place = await newChannel(features);
  const own = createMetrics({ processMetrics: false });
  const small = new RealtimeNode(
    // Of about three of these frames.
    new LiveNode(
      { ...test.platform, metrics: own },
      { heads: async (streams) => streams.map(() => 0), maxKeptBytes: 2_500 },
      20,
    ),
    features.realtime,
  );
  const channel = await small.open(place.organizationId, place.channelId);
  if (channel === null) throw new Error('there is no such channel');
  const live = await subscribe(channel);
  await append(place, 60);
  const messages = await messagesOf(place, 1);
  // The second half arrives before the first, which is lost.
  for (const message of messages.slice(30)) await publish(place, message);
  await eventually(() => live.received.at(-1) === 'event 61');
  expect(live.received).toEqual(['caught_up 1', ...events(2, 61)]);
  expect(channel.recentAfter(40, MIB)).toBeNull();
  const resumed = await subscribe(channel, { after: 5 });
  expect(resumed.received).toEqual([...events(6, 61), 'caught_up 61']);
  await append(place, 1);
  for (const message of await messagesOf(place, 61)) await publish(place, message);
  await eventually(() =>
    expect([live, resumed].map(({ received }) => received.at(-1))).toEqual(['event 62', 'event 62']),
  );
  await eventually(async () => {
    const text = await own.scrape();
    expect(Number(/^parley_realtime_frames_evicted_total (\d+)/m.exec(text)?.[1])).toBeGreaterThan(50);
    expect(keptBytesIn(text)).toBeLessThanOrEqual(2_500);
    expect(keptBytesIn(text)).toBeGreaterThan(0);
  });
  channel.close();
  await eventually(async () => expect(keptBytesIn(await own.scrape())).toBe(0));
  await small.stop();
});
