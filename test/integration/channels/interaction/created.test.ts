/*
 * Lists by time. Where times never decrease, a list holds what a scan of all interactions finds; in a log of an
 * earlier version whose times do decrease, a time still splits the channel in two.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { EventToAppend } from '#libs/platform/eventstore/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { rounds, roundsTimeoutMs } from '#test/support/rounds.ts';

const START = Date.UTC(2026, 0, 1);
const YEAR = 365 * 24 * 3_600_000;
const COUNT = 6_000;
const OLD_COUNT = 1_500;
const ROLES = ['user_message', 'agent_response', 'internal_error'] as const;
const organizationId = newId();
const channelId = newId();
const oldChannelId = newId();

interface Posted {
  readonly sequence: number;
  readonly at: string;
  readonly role: (typeof ROLES)[number];
  readonly turn: string;
  readonly complete: boolean;
}

let test: TestPlatform;
let features: Features;
let all: Posted[];
let old: Posted[];

/** A second passes between two events; some have equal times. */
function timeOf(index: number): number {
  return START + (index - (index % 40 < 3 ? index % 40 : 0)) * 1_000;
}

/** The clock of one of two gateways is half a minute behind, and one event is stamped ten years too late. */
function oldTimeOf(index: number): number {
  return START + index * 1_000 + (index === 1_250 ? 10 * YEAR : -30_000 * (index % 2));
}

function eventAt(index: number, timeMs: number, random: (below: number) => number): EventToAppend {
  const id = newId();
  const at = new Date(timeMs).toISOString();
  const actor = { type: 'service', id: 'history' } as const;
  const metadata = { at, organizationId, actor, commandId: id, $correlationId: id, $causationId: id };
  if (index === 0) {
    const nulls = { metaData: null, source: null, agentInvocationBehavior: null, parentChannelId: null };
    const data = { id: channelId, type: 'websocket', channelType: 'chat', name: 'old', participants: [], ...nulls };
    return { id, type: 'ChannelCreated.v1', data: { ...data, originMessageId: null }, metadata };
  }
  if (random(6) === 0) return { id, type: 'ChannelRenamed.v1', data: { name: `${index}` }, metadata };
  const data = {
    participant: { type: 'system' },
    content: [],
    contentRole: random(400) === 0 ? 'internal_error' : (ROLES[random(2)] ?? 'user_message'),
    complete: index % 500 !== 7,
    metadata: null,
    invocationConfig: null,
    turnId: `turn-${index % 90}`,
    spanId: `span-${index}`,
    parentSpanId: null,
    depth: 1,
    organizationApplication: null,
  };
  return { id, type: 'InteractionPosted.v1', data, metadata };
}

/** @returns its interactions */
async function fill(channel: string, count: number, timeAt: (index: number) => number): Promise<Posted[]> {
  const random = randomFrom(7);
  const events = Array.from({ length: count }, (_, index) => eventAt(index, timeAt(index), random));
  for (let from = 0; from < count; from += 400) {
    const some = events.slice(from, from + 400);
    await test.platform.store.append(`channel-${channel}`, streamRevision(from - 1), some);
    // Sometimes in other batches than they were appended in.
    if (random(3) > 0) await features.projector.catchUp('channel', organizationId, channel);
  }
  await features.projector.catchUp('channel', organizationId, channel);
  return events.flatMap(({ type, data, metadata: { at } }, index) => {
    if (type !== 'InteractionPosted.v1') return [];
    const {
      contentRole: role,
      turnId: turn,
      complete,
    } = data as { contentRole: Posted['role'] } & Record<'turnId' | 'complete', never>;
    return [{ sequence: index + 1, at, role, turn, complete }];
  });
}

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
  all = await fill(channelId, COUNT, timeOf);
  old = await fill(oldChannelId, OLD_COUNT, oldTimeOf);
}, 120_000);
afterAll(() => test.stop());

interface Query {
  readonly createdAfter: string | undefined;
  readonly createdBefore: string | undefined;
  readonly afterSequence: number | undefined;
  readonly beforeSequence: number | undefined;
  readonly contentRole: Posted['role'] | undefined;
  readonly turnId: string | undefined;
  readonly order: 'asc' | 'desc';
  readonly includeIncomplete: boolean;
}

function expected(query: Query, end = Infinity): number[] {
  const after = query.createdAfter === undefined ? -Infinity : Date.parse(query.createdAfter);
  const before = query.createdBefore === undefined ? Infinity : Date.parse(query.createdBefore);
  const sequences = all
    .filter(({ at }) => Date.parse(at) > after && Date.parse(at) < before)
    .filter(({ role, turn }) => role === (query.contentRole ?? role) && turn === (query.turnId ?? turn))
    .filter(({ complete }) => complete || query.includeIncomplete)
    .map(({ sequence }) => sequence)
    .filter((one) => one > (query.afterSequence ?? 0) && one < (query.beforeSequence ?? Infinity) && one < end);
  return query.order === 'asc' ? sequences : sequences.toReversed();
}

async function list(
  query: Query,
  page: { size: number; offset: number; after: string | null },
  { asOf, channel = channelId }: { asOf?: number | undefined; channel?: string } = {},
) {
  const { queries } = features.channels;
  const filter = { ...query, includeToolCallUpdates: false };
  const point = asOf === undefined ? undefined : { sequence: asOf };
  const found = await queries.at(organizationId, channel, point, (view) =>
    queries.list(organizationId, channel, filter, page, null, view),
  );
  const sequences = found?.items.map((item): number => JSON.parse(item.toString()).sequence) ?? [];
  return { sequences, total: found?.total, hasNext: found?.hasNext, last: found?.last ?? null };
}

/** Often exactly an interaction's time, or one millisecond beside it. */
const time = fc
  .tuple(fc.integer({ min: -10, max: COUNT + 10 }), fc.constantFrom(-500, -1, 0, 1, 10_000))
  .map(([index, offset]) => new Date(START + index * 1_000 + offset).toISOString());
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const query: fc.Arbitrary<Query> = fc.record({
  createdAfter: maybe(time),
  createdBefore: maybe(time),
  afterSequence: maybe(fc.nat({ max: COUNT + 10 })),
  beforeSequence: maybe(fc.nat({ max: COUNT + 10 })),
  contentRole: maybe(fc.constantFrom(...ROLES)),
  turnId: maybe(fc.nat({ max: 95 }).map((n) => `turn-${n}`)),
  order: fc.constantFrom('asc', 'desc'),
  includeIncomplete: fc.boolean(),
});

describe('interactions created in a span of time', () => {
  it(
    'are found, counted and paged, with any other filter, now and as of a sequence',
    async () => {
      const paging = fc.record({
        size: fc.integer({ min: 1, max: 100 }),
        page: fc.oneof(fc.constant(0), fc.nat({ max: 40 })),
        asOf: maybe(fc.integer({ min: 1, max: COUNT + 10 })),
      });
      await fc.assert(
        fc.asyncProperty(query, paging, async (filter, { size, page, asOf }) => {
          const wanted = expected(filter, asOf === undefined ? undefined : asOf + 1);
          const offset = size * page;
          const first = await list(filter, { size, offset, after: null }, { asOf });
          expect(first.sequences).toEqual(wanted.slice(offset, offset + size));
          expect([first.total, first.hasNext]).toEqual([wanted.length, wanted.length > offset + size]);
          if (first.last === null) return;
          const second = await list(filter, { size, offset: 0, after: first.last }, { asOf });
          expect(second.sequences).toEqual(wanted.slice(offset + size, offset + 2 * size));
        }),
        { numRuns: rounds(40) },
      );
    },
    roundsTimeoutMs(120_000),
  );

  it('need no more commands of Redis the older the channel is', async () => {
    const most = { early: 0, late: 0 };
    for (let index = 0; index < 2_000; index += 130) {
      for (const [when, begin] of Object.entries({ early: 0, late: COUNT - 2_100 })) {
        for (const contentRole of [undefined, 'internal_error'] as const) {
          const between = [begin + index, begin + index + 60].map((at) => new Date(START + at * 1_000).toISOString());
          const [createdAfter, createdBefore] = between;
          const filter = { ...NARROWED_BY_NOTHING, createdAfter, createdBefore, contentRole };
          const before = await commandsProcessed();
          await list(filter, { size: 50, offset: 0, after: null });
          // Each node also counts the command that asks for the count.
          const taken = (await commandsProcessed()) - before - test.platform.redis.nodes().length;
          most[when === 'early' ? 'early' : 'late'] = Math.max(most[when === 'early' ? 'early' : 'late'], taken);
        }
      }
    }
    expect(most.early).toBeGreaterThan(5);
    expect(most.early).toBeLessThanOrEqual(21);
    expect(most.late).toBeLessThanOrEqual(21);
  });

  it('are before or after a time, never both, in an old log with decreasing times', async () => {
    const everything = { size: OLD_COUNT, offset: 0, after: null };
    const listed = (times: Partial<Query>) =>
      list({ ...NARROWED_BY_NOTHING, includeIncomplete: true, order: 'asc', ...times }, everything, {
        channel: oldChannelId,
      });
    let shownBefore = 0;
    for (let index = -50; index < OLD_COUNT + 50; index += 23) {
      const timeMs = START + index * 1_000;
      const until = new Date(timeMs + 1).toISOString();
      const before = (await listed({ createdBefore: until })).sequences;
      const after = (await listed({ createdAfter: new Date(timeMs).toISOString() })).sequences;
      expect([...before, ...after]).toEqual(old.map(({ sequence }) => sequence));
      expect(before.length).toBeGreaterThanOrEqual(shownBefore);
      shownBefore = before.length;
      // The event that is stamped too late hides later ones until the next block of revisions begins.
      if (index > 1_160 && index < 1_340) continue;
      for (const { sequence, at } of old) {
        const aheadMs = Date.parse(at) - timeMs;
        if (Math.abs(aheadMs) <= 30_000 || sequence === 1_251) continue;
        expect(before.includes(sequence)).toBe(aheadMs < 0);
      }
    }
  });
});

const NARROWED_BY_NOTHING: Query = {
  createdAfter: undefined,
  createdBefore: undefined,
  afterSequence: undefined,
  beforeSequence: undefined,
  contentRole: undefined,
  turnId: undefined,
  order: 'desc',
  includeIncomplete: false,
};

async function commandsProcessed(): Promise<number> {
  const infos = await Promise.all(test.platform.redis.nodes().map((node) => node.info('stats')));
  return infos.reduce((sum, info) => sum + Number(/total_commands_processed:(\d+)/.exec(info)?.[1]), 0);
}
