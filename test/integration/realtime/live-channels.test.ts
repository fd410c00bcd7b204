/* A channel as one process hears it: whatever its topic does, every listener gets an exact suffix of the log. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { CLOSE, RealtimeNode } from '#libs/features/realtime/index.ts';
import type { Grant } from '#libs/features/realtime/index.ts';
import type { LiveChannel } from '#libs/features/realtime/live-channel.ts';
import { LOSSY_BYTES, SLOW_BYTES, Subscriber } from '#libs/features/realtime/subscriber.ts';
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
  liveTopic,
  snapshotJson,
} from '#libs/platform/live/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { payloadOf } from '#libs/platform/websocket/index.ts';
import { composeFeatures } from '#services/features.ts';
import type { Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform } from '#test/support/platform.ts';
import type { TestPlatform } from '#test/support/platform.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { contextOf, newChannel } from '#test/support/realtime/channel-life.ts';
import { nodeWith } from '#test/support/redis-commands.ts';

let test: TestPlatform<TestRedis>;
let features: Features;
let node: RealtimeNode;
const metrics = createMetrics({ processMetrics: false });
const listeners: Recorder[] = [];

beforeAll(async () => {
  test = await startTestPlatform({ redis: 'own' });
  features = composeFeatures(test.platform);
  node = new RealtimeNode(
    { ...test.platform, metrics },
    // A sweep would find what a topic has lost: here only what is published counts.
    { ...features.realtime, heads: async (channels) => channels.map(() => 0) },
  );
});
afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close();
});
afterAll(async () => {
  await node.stop();
  await test.stop();
});

/** Takes what it is written, and says how much of it is unsent as it is told. */
class Recorder extends Subscriber {
  readonly format = 'websocket';
  readonly grant: Grant;
  readonly include: number;
  readonly frames: Record<string, unknown>[] = [];
  bytes = 0;
  readonly #channel: LiveChannel;
  #unsentBytes = 0;
  #drained = Promise.withResolvers<void>();
  isOpen = true;
  closedWith: number | undefined;

  constructor(channel: LiveChannel, include = 0) {
    super();
    this.#channel = channel;
    this.include = include;
    this.grant = {
      organizationId: channel.organizationId,
      channelId: channel.channelId,
      principalType: 'service',
      principalId: 's',
      keyId: 'k',
      scopes: [],
      takesPart: false,
      expiresAtMs: null,
    };
    listeners.push(this);
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

  get told(): string[] {
    return this.frames.map(({ frame, seq, text }) => `${String(frame)} ${String(seq ?? text)}`);
  }
}

function payloadLength(frame: Buffer): number {
  const short = (frame[1] ?? 0) & 0x7f;
  return short === 127 ? Number(frame.readBigUInt64BE(2)) : short === 126 ? frame.readUInt16BE(2) : short;
}

type Place = { readonly organizationId: string; readonly channelId: string };

async function open({ organizationId, channelId }: Place): Promise<LiveChannel> {
  const channel = await node.channels.open(organizationId, channelId);
  if (channel === null) throw new Error('there is no such channel');
  return channel;
}

/** @param after where it begins; by default it is live at once */
async function listen(channel: LiveChannel, { include = 0, after = channel.head as number } = {}): Promise<Recorder> {
  const listener = new Recorder(channel, include);
  listener.position = after;
  channel.join(listener);
  await eventually(() => listener.told.some((one) => one.startsWith('caught_up')) && !listener.lacksValues);
  return listener;
}

let names = 0;
const MIB = 1024 * 1024;

const renamed = () => ({ type: 'ChannelRenamed.v1', data: { name: `name ${++names}` } });

/** Puts events into the log, and publishes none of them. */
async function append(
  { organizationId, channelId }: Place,
  count: number,
  eventAt: (n: number) => { type: string; data: object } = renamed,
): Promise<void> {
  const head = (await features.realtime.log.head(organizationId, channelId)) ?? 0;
  const { commandId, at, actor } = contextOf(organizationId, newId(), 0);
  const metadata = { at, organizationId, actor, commandId, $correlationId: commandId, $causationId: commandId };
  const events = Array.from({ length: count }, (_, n) => ({ id: newId(), ...eventAt(n), metadata }));
  // Half of the largest append.
  const most = Math.floor(MIB / 2 / JSON.stringify(events[0]).length);
  for (let from = 0; from < count; from += most) {
    const some = events.slice(from, from + most);
    await test.platform.store.append(`channel-${channelId}`, streamRevision(head - 1 + from), some);
  }
}

const publish = ({ organizationId, channelId }: Place, message: string): Promise<unknown> =>
  nodeWith(test.platform.redis, liveTopic(organizationId, channelId)).spublish(
    liveTopic(organizationId, channelId),
    message,
  );

/** What is published of the events behind a sequence. */
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

it('a channel that the organization does not have is none', async () => {
  const { organizationId, channelId } = await newChannel(features);
  expect(await node.channels.open(organizationId, newId())).toBeNull();
  expect(await node.channels.open(newId(), channelId)).toBeNull();
});

it('events that come twice, in the wrong order, or not at all are told once and in order', async () => {
  const place = await newChannel(features);
  const listener = await listen(await open(place));
  await append(place, 6);
  const [two = '', three = '', , five = '', six = ''] = await messagesOf(place, 1);
  // The fourth never comes, nor does the seventh, of which only a head notice tells.
  for (const message of [three, two, two, five, six, three, head(7), head(3)]) await publish(place, message);
  await eventually(() => listener.told.length >= 7);
  expect(listener.told).toEqual(['caught_up 1', ...events(2, 7)]);
  expect(await filled()).toBeGreaterThan(0);
});

it('lines of one message, and lines that nobody understands, are no reason to lose any', async () => {
  const place = await newChannel(features);
  const listener = await listen(await open(place));
  await append(place, 3);
  const messages = await messagesOf(place, 1);
  const before = await filled();
  await publish(place, ['Y 1', messages[0], 'E x', '', messages[1], 'Z', messages[2]].join('\n'));
  await eventually(() => listener.told.length === 4);
  expect(listener.told).toEqual(['caught_up 1', ...events(2, 4)]);
  expect(await filled()).toBe(before);
});

it('a listener that is far behind gets pages of the log, and what is told meanwhile, once and in order', async () => {
  const place = await newChannel(features);
  await append(place, 1_300);
  const channel = await open(place);
  const behind = Array.from({ length: 4 }, (_, n) => {
    const listener = new Recorder(channel);
    listener.position = n * 100;
    channel.join(listener);
    return listener;
  });
  await append(place, 700);
  for (const message of await messagesOf(place, 1_301)) await publish(place, message);
  await eventually(() => behind.every((listener) => listener.told.at(-1)?.startsWith('event 2001') === true));
  for (const [n, listener] of behind.entries()) {
    expect(listener.told.filter((one) => one.startsWith('event'))).toEqual(events(n * 100 + 1, 2_001));
  }
}, 30_000);

it('listeners that read nothing hold a bounded amount of memory together, and all get on once they read', async () => {
  const place = await newChannel(features);
  const data = {
    participant: { type: 'system' },
    content: [{ type: 'text', text: 'x'.repeat(2_000) }],
    contentRole: 'agent_response',
    complete: true,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    parentSpanId: null,
    depth: 1,
    organizationApplication: null,
  };
  await append(place, 600, (n) => ({ type: 'InteractionPosted.v1', data: { ...data, spanId: `span-${n}` } }));
  const channel = await open(place);
  const crowd = Array.from({ length: 80 }, () => {
    const listener = new Recorder(channel);
    listener.unsentBytes = 1;
    channel.join(listener);
    return listener;
  });
  await eventually(() => crowd.every(({ frames }) => frames.length > 0), { timeoutMs: 60_000 });
  const held = crowd.reduce((sum, { bytes }) => sum + bytes, 0);
  expect(held).toBeGreaterThan(32 * MIB);
  expect(held).toBeLessThan(70 * MIB);
  for (const listener of crowd) listener.unsentBytes = 0;
  await eventually(() => crowd.every(({ frames }) => frames.length >= 602), { timeoutMs: 60_000 });
  for (const { told } of crowd) expect(told).toEqual([...events(1, 601), 'caught_up 601']);
}, 150_000);

it('one who resumes beyond what this process has heard makes it catch up; beyond the log it is refused', async () => {
  const place = await newChannel(features);
  const channel = await open(place);
  const listener = await listen(channel);
  await append(place, 3);
  expect(await channel.reaches(5)).toBe(false);
  expect(await channel.reaches(4)).toBe(true);
  expect(channel.head).toBe(4);
  await eventually(() => listener.told.length === 4);
  expect(listener.told).toEqual(['caught_up 1', ...events(2, 4)]);
});

describe('what a listener has not asked for', () => {
  const { nested, incomplete, ephemeral } = FRAME_FLAG;
  const tell = (sequence: number, flags: number) =>
    encodeEvent(
      eventFrame(sequenceOf(streamRevision(sequence - 1)), '2026-01-01T00:00:00.000Z', {
        type: 'interaction.posted',
        json: '{"text":"said"}',
        flags,
      }),
    );

  it('comes without data where it is an event, and not at all where it is none', async () => {
    const place = await newChannel(features);
    const channel = await open(place);
    const plain = await listen(channel);
    const all = await listen(channel, { include: nested | incomplete | ephemeral });
    const whole = await listen(channel, { include: incomplete });
    const value = (flags: number, text: string) =>
      encodeValue({ flags, key: 'k', json: `{"frame":"x","text":"${text}"}` });
    await publish(place, tell(2, incomplete));
    await publish(place, value(ephemeral, 'typing'));
    await publish(place, value(incomplete | nested, 'below'));
    await publish(place, value(incomplete, 'delta'));
    await publish(place, tell(3, nested | incomplete));
    await publish(place, tell(4, 0));
    await eventually(() => [plain, all, whole].every(({ told }) => told.at(-1) === 'event 4'));
    const dataOf = ({ frames }: Recorder) => frames.filter(({ frame }) => frame === 'event').map(({ data }) => data);
    const said = { text: 'said' };
    expect(plain.told).toEqual(['caught_up 1', ...events(2, 4)]);
    expect(dataOf(plain)).toEqual([null, null, said]);
    expect(all.told).toEqual(['caught_up 1', 'event 2', 'x typing', 'x below', 'x delta', 'event 3', 'event 4']);
    expect(dataOf(all)).toEqual([said, said, said]);
    expect(whole.told).toEqual(['caught_up 1', 'event 2', 'x delta', 'event 3', 'event 4']);
    expect(dataOf(whole)).toEqual([said, null, said]);
  });
});

describe('a listener that reads slowly', () => {
  it('misses no event, and what else it missed is made good once it has read', async () => {
    const place = await newChannel(features);
    const { organizationId, channelId } = place;
    const channel = await open(place);
    const slow = await listen(channel, { include: FRAME_FLAG.ephemeral });
    const typing = new EphemeralValues(test.platform.redis, { name: 'test', keyPrefix: 'test', ttlMs: 60_000, max: 3 });
    slow.unsentBytes = LOSSY_BYTES + 1;
    await typing.put(organizationId, channelId, { name: 'a', json: '{"n":1}' });
    await append(place, 1);
    for (const message of await messagesOf(place, 1)) await publish(place, message);
    await eventually(() => slow.told.includes('event 2'));
    expect(slow.told).toEqual(['caught_up 1', 'event 2']);
    expect(slow.lacksValues).toBe(true);
    slow.unsentBytes = 0;
    await eventually(() => !slow.lacksValues);
    await typing.put(organizationId, channelId, { name: 'a', json: '{"n":2}' });
    await eventually(() => slow.frames.at(-1)?.['frame'] === 'ephemeral');
    expect(slow.told.filter((one) => one.startsWith('event'))).toEqual(['event 2']);
  });

  it('is not too slow for texts that were long when it came', async () => {
    const place = await newChannel(features);
    const json = snapshotJson('1', 'x'.repeat(SLOW_BYTES));
    const values = { current: () => Promise.resolve([{ flags: FRAME_FLAG.incomplete, key: 'draft:1', json }]) };
    const heads = async (channels: readonly unknown[]) => channels.map(() => 0);
    const parts = { ...test.platform, metrics: createMetrics({ processMetrics: false }) };
    const other = new RealtimeNode(parts, { ...features.realtime, values: [values], heads });
    const channel = await other.channels.open(place.organizationId, place.channelId);
    if (channel === null) throw new Error('there is no such channel');
    const listener = await listen(channel, { include: FRAME_FLAG.incomplete });
    listener.unsentBytes = SLOW_BYTES + 1_000;
    await append(place, 2);
    const [first = '', second = ''] = await messagesOf(place, 1);
    await publish(place, first);
    await eventually(() => listener.told.at(-1) === 'event 2');
    expect(listener.isOpen).toBe(true);
    listener.unsentBytes = 3 * SLOW_BYTES;
    await publish(place, second);
    await eventually(() => !listener.isOpen);
    expect(listener.closedWith).toBe(CLOSE.slow);
    await other.stop();
  });

  it('is closed when too much waits for it, and only it', async () => {
    const place = await newChannel(features);
    const channel = await open(place);
    const [slow, quick] = [await listen(channel), await listen(channel)];
    slow.unsentBytes = SLOW_BYTES + 1;
    await append(place, 1);
    for (const message of await messagesOf(place, 1)) await publish(place, message);
    await eventually(() => quick.told.includes('event 2'));
    expect(slow.closedWith).toBe(CLOSE.slow);
    expect(slow.told).toEqual(['caught_up 1']);
    expect(quick.closedWith).toBeUndefined();
  });
});

it('a topic is listened to while somebody is there, and let go soon after', async () => {
  const place = await newChannel(features);
  const { organizationId, channelId } = place;
  const count = async (): Promise<unknown> =>
    (await test.redis.command('PUBSUB', 'SHARDNUMSUB', liveTopic(organizationId, channelId))) as unknown;
  const listener = await listen(await open(place));
  expect(await count()).toEqual([liveTopic(organizationId, channelId), 1]);
  listener.close();
  await eventually(async () => expect(await count()).toEqual([liveTopic(organizationId, channelId), 0]));
});

it('a channel whose opening may still fail takes nobody in', async () => {
  const place = await newChannel(features);
  const reads: PromiseWithResolvers<void>[] = [];
  const { log } = features.realtime;
  const late = new RealtimeNode(
    { ...test.platform, metrics: createMetrics({ processMetrics: false }) },
    {
      ...features.realtime,
      heads: async (channels) => channels.map(() => 0),
      log: {
        head: (organizationId, channelId) => log.head(organizationId, channelId),
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
  const failing = late.channels.open(organizationId, channelId);
  await eventually(() => reads.length === 1);
  expect(late.channels.openOne(organizationId, channelId)).toBe(null);
  reads[0]?.reject(storeUnavailable('event store'));
  await expect(failing).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(late.channels.size).toBe(0);
  const opening = late.channels.open(organizationId, channelId);
  await eventually(() => reads.length === 2);
  reads[1]?.resolve();
  expect(await opening).toBe(late.channels.openOne(organizationId, channelId));
  await late.stop();
});

it('what was told while the topic was lost, just as the channel was being opened, is found at once', async () => {
  const place = await newChannel(features);
  const { organizationId, channelId } = place;
  const { log } = features.realtime;
  const read = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const late = new RealtimeNode(
    { ...test.platform, metrics: createMetrics({ processMetrics: false }) },
    {
      ...features.realtime,
      heads: async (channels) => channels.map(() => 2),
      log: {
        head: (...asked) => log.head(...asked),
        async *framesAfter(...asked) {
          yield* log.framesAfter(...asked);
          read.resolve();
          await release.promise;
        },
      },
    },
  );
  const opening = late.channels.open(organizationId, channelId);
  await read.promise;
  await append(place, 1);
  let heard = 0;
  const other = test.platform.topics.subscribe(liveTopic(organizationId, channelId), {
    onMessage: () => undefined,
    onListening: () => void (heard += 1),
    onInterrupted: () => undefined,
  });
  await eventually(() => heard === 1);
  await test.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await eventually(() => heard === 2);
  release.resolve();
  const channel = await opening;
  // Without a look at once, that of every 15 seconds would find it.
  await eventually(() => expect(channel?.head).toBe(2), { timeoutMs: 10_000 });
  other.stop();
  await late.stop();
});
