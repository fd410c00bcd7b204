/* Lists by time, of a channel whose gateways' clocks disagree: what is listed is what a look at everything finds. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { EventToAppend } from '#libs/platform/eventstore/index.ts';
import { composeFeatures } from '#services/features.ts';
import type { Features } from '#services/features.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import { startTestPlatform } from '#test/support/platform.ts';
import type { TestPlatform } from '#test/support/platform.ts';

const START = Date.UTC(2026, 0, 1);
const YEAR = 365 * 24 * 3_600_000;
/** More than one of the long stretches that times are kept of. */
const COUNT = 17_500;
const ROLES = ['user_message', 'agent_response', 'internal_error'] as const;
const organizationId = newId();
const channelId = newId();

interface Posted {
  readonly sequence: number;
  readonly at: string;
  readonly role: (typeof ROLES)[number];
  readonly turn: string;
  readonly complete: boolean;
}

let test: TestPlatform;
let features: Features;
const all: Posted[] = [];

/** A second passes between two events; on two stretches a second gateway's clock is half a minute behind. */
function stampOf(index: number, random: (below: number) => number): number {
  const time = START + index * 1_000;
  if (index === 2_000) return time + 10 * YEAR;
  if (index === 9_000) return time - 10 * YEAR;
  if (index === 60) return -1_000;
  const isDisputed = (index > 300 && index < 700) || (index > 16_200 && index < 16_600);
  return isDisputed && random(2) === 0 ? time - 30_000 : time;
}

function eventAt(index: number, random: (below: number) => number): EventToAppend {
  const id = newId();
  const at = new Date(stampOf(index, random)).toISOString();
  const actor = { type: 'service', id: 'history' } as const;
  const metadata = { at, organizationId, actor, commandId: id, $correlationId: id, $causationId: id };
  if (index === 0) {
    const nulls = { metaData: null, source: null, agentInvocationBehavior: null, parentChannelId: null };
    const data = { id: channelId, type: 'websocket', channelType: 'chat', name: 'old', participants: [], ...nulls };
    return { id, type: 'ChannelCreated.v1', data: { ...data, originMessageId: null }, metadata };
  }
  if (random(6) === 0) return { id, type: 'ChannelRenamed.v1', data: { name: `${index}` }, metadata };
  const role = random(400) === 0 ? 'internal_error' : (ROLES[random(2)] ?? 'user_message');
  const posted = { sequence: index + 1, at, role, turn: `turn-${index % 90}`, complete: index % 500 !== 7 };
  all.push(posted);
  const data = {
    participant: { type: 'system' },
    content: [],
    contentRole: role,
    complete: posted.complete,
    metadata: null,
    invocationConfig: null,
    turnId: posted.turn,
    spanId: `span-${index}`,
    parentSpanId: null,
    depth: 1,
    organizationApplication: null,
  };
  return { id, type: 'InteractionPosted.v1', data, metadata };
}

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
  const random = randomFrom(7);
  for (let from = 0; from < COUNT; from += 400) {
    const events = Array.from({ length: Math.min(400, COUNT - from) }, (_, at) => eventAt(from + at, random));
    await test.platform.store.append(`channel-${channelId}`, streamRevision(from - 1), events);
    // Now and then in other batches than they were appended in.
    if (random(3) > 0) await features.projector.catchUp('channel', organizationId, channelId);
  }
  await features.projector.catchUp('channel', organizationId, channelId);
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

async function list(query: Query, page: { size: number; offset: number; after: string | null }, asOf?: number) {
  const { queries } = features.interactions;
  const filter = { ...query, includeToolCallUpdates: false };
  const point = asOf === undefined ? undefined : { sequence: asOf };
  const found = await queries.at(organizationId, channelId, point, (view) =>
    queries.list(organizationId, channelId, filter, page, null, view),
  );
  const sequences = found?.items.map((item): number => JSON.parse(item.toString()).sequence) ?? [];
  return { sequences, total: found?.total, hasNext: found?.hasNext, last: found?.last ?? null };
}

/** Often right at an interaction's time, or one millisecond beside it. */
const time = fc
  .tuple(fc.oneof(fc.nat({ max: COUNT }), fc.integer({ min: 290, max: 720 })), fc.constantFrom(-500, -1, 0, 1, 10_000))
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
  it('are found, counted and paged, whatever else they are narrowed by, now and as of a sequence', async () => {
    const paging = fc.record({
      size: fc.integer({ min: 1, max: 100 }),
      page: fc.oneof(fc.constant(0), fc.nat({ max: 40 })),
      asOf: maybe(fc.integer({ min: 1, max: COUNT + 10 })),
    });
    await fc.assert(
      fc.asyncProperty(query, paging, async (filter, { size, page, asOf }) => {
        const wanted = expected(filter, asOf === undefined ? undefined : asOf + 1);
        const offset = size * page;
        const first = await list(filter, { size, offset, after: null }, asOf);
        expect(first.sequences).toEqual(wanted.slice(offset, offset + size));
        expect([first.total, first.hasNext]).toEqual([wanted.length, wanted.length > offset + size]);
        if (first.last === null) return;
        const second = await list(filter, { size, offset: 0, after: first.last }, asOf);
        expect(second.sequences).toEqual(wanted.slice(offset + size, offset + 2 * size));
      }),
      { numRuns: 300 },
    );
  }, 120_000);

  it('take no more commands of Redis the older the channel is', async () => {
    const most = { early: 0, late: 0 };
    for (let index = 0; index < 2_000; index += 130) {
      for (const [when, begin] of Object.entries({ early: 720, late: 14_000 })) {
        for (const contentRole of [undefined, 'internal_error'] as const) {
          const between = [begin + index, begin + index + 60].map((at) => new Date(START + at * 1_000).toISOString());
          const [createdAfter, createdBefore] = between;
          const filter = { ...NARROWED_BY_NOTHING, createdAfter, createdBefore, contentRole };
          const before = await commandsProcessed();
          await list(filter, { size: 50, offset: 0, after: null });
          const taken = (await commandsProcessed()) - before;
          most[when === 'early' ? 'early' : 'late'] = Math.max(most[when === 'early' ? 'early' : 'late'], taken);
        }
      }
    }
    expect(most.early).toBeGreaterThan(5);
    expect(most.late).toBeLessThanOrEqual(40);
    expect(most.early).toBeLessThanOrEqual(40);
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
