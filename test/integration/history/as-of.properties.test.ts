import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { HistoryPoint } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, composeReadModels, type Features } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { ADA, type PlayedChannel, playInteractions } from '#test/support/channel-with-a-past.ts';
import { eventsUntil, type Past, type PastInteraction, pastOf, streamOf } from '#test/support/past.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { IN_CAMPAIGN, rounds, roundsTimeoutMs } from '#test/support/rounds.ts';

let test: TestPlatform;
let features: Features;

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
});
afterAll(() => test.stop());

const history = fc.record({
  seed: fc.nat(),
  // Blocks are of 100 revisions: some histories end in the first, some cross several.
  commands: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 95, max: 330 })),
  skewMs: fc.constantFrom(0, 500, 20_000),
});

/** The first point that is read and the distance between points, where a history is too long to read all of them. */
const strides = fc.constantFrom([0, 3], [1, 5], [2, 7], [0, 11]);

async function play(shape: { seed: number; commands: number; skewMs: number }) {
  const channel = await playInteractions(features, shape);
  const log = await streamOf(test.platform.store, `channel-${channel.channelId}`);
  return { channel, log };
}

const reader = { userId: ADA };
/** Ids that are derived from positions, which the plain fold does not compute. */
const DERIVED = new Set(['interaction_id', 'message_event_id']);
const parsed = (bytes: Buffer | null | undefined): unknown =>
  bytes ? JSON.parse(bytes.toString(), (key, value: unknown) => (DERIVED.has(key) ? undefined : value)) : null;

/** Every interaction at a point, page by page; null if the channel did not exist. */
async function listAt(
  { organizationId, channelId }: PlayedChannel,
  point: HistoryPoint,
  filter: { readonly includeIncomplete: boolean; readonly order: 'asc' | 'desc' },
): Promise<{ readonly items: unknown[]; readonly total: number } | null> {
  const { queries } = features.channels;
  const items: unknown[] = [];
  for (let after: string | null = null; ;) {
    const page: { size: number; offset: number; after: string | null } = { size: 30, offset: 0, after };
    const found = await queries.at(organizationId, channelId, point, (view) =>
      queries.list(organizationId, channelId, { ...filter, includeToolCallUpdates: false }, page, reader, view),
    );
    if (found === null) return null;
    items.push(...found.items.map(parsed));
    if (!found.hasNext) return { items, total: found.total };
    after = found.last;
  }
}

function shown(past: Past, includeIncomplete: boolean): PastInteraction[] {
  return past.interactions.filter(({ complete }) => includeIncomplete || complete);
}

/** The channel and its interactions at a point, as they are read. */
async function readAt(channel: PlayedChannel, point: HistoryPoint) {
  const { organizationId, channelId } = channel;
  const found = await features.channels.channelAt(organizationId, channelId, point);
  const all = await listAt(channel, point, { includeIncomplete: true, order: 'asc' });
  const complete = await listAt(channel, point, { includeIncomplete: false, order: 'desc' });
  return { channel: parsed(found?.json), all, complete };
}

/** The same, by the plain fold. */
function folded(past: Past) {
  const lists = (found: readonly PastInteraction[]) => {
    const items = found.map((one) => expect.objectContaining(one));
    return past.channel && { items, total: found.length };
  };
  return {
    channel: past.channel,
    all: lists(shown(past, true)),
    complete: lists(shown(past, false).toReversed()),
  };
}

/** One interaction with its tree. */
async function readInteraction(channel: PlayedChannel, at: number, sequence: number, includeIncomplete: boolean) {
  const { organizationId, channelId } = channel;
  const { queries } = features.channels;
  const place = { channelId, sequence: sequence as never };
  const shown = { reader, includeIncomplete, includeToolCallUpdates: false };
  const found = await queries.at(organizationId, channelId, { sequence: at }, (view) =>
    queries.nested(organizationId, place, shown, view),
  );
  return parsed(found);
}

function foldedInteraction({ interactions }: Past, sequence: number, includeIncomplete: boolean): unknown {
  const found = interactions.find((one) => one.sequence === sequence);
  if (found === undefined || (!includeIncomplete && !found.complete)) return null;
  const below = descendants(interactions, found).filter(({ complete }) => includeIncomplete || complete);
  return expect.objectContaining({
    ...found,
    nested_interactions: below.map((one) => expect.objectContaining(one)),
  });
}

function descendants(all: readonly PastInteraction[], root: PastInteraction): PastInteraction[] {
  const spans = new Set([root.span_id]);
  return all.filter(({ span_id, parent_span_id }) => spans.has(parent_span_id) && spans.add(span_id) !== undefined);
}

describe('a read as of a point', () => {
  it(
    'shows the fold of the events up to that sequence, whatever came later',
    async () => {
      await fc.assert(
        fc.asyncProperty(history, strides, async (shape, sample) => {
          const { channel, log } = await play(shape);
          const [first, stride] = log.length > 60 ? sample : [0, 1];
          // One past the end is the present.
          for (let at = first; at <= log.length + 1; at += stride) {
            expect(await readAt(channel, { sequence: at })).toEqual(folded(pastOf(log.slice(0, at))));
          }
        }),
        { numRuns: rounds(2) },
      );
    },
    roundsTimeoutMs(240_000),
  );

  it(
    'shows an interaction with its tree of that point, and no later interaction',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          history,
          fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 60 }),
          async (shape, picks) => {
            const { channel, log } = await play(shape);
            for (const [pickedAt, picked] of picks) {
              const at = pickedAt % (log.length + 2);
              const sequence = 1 + (picked % (log.length + 1));
              const past = pastOf(log.slice(0, at));
              for (const includeIncomplete of [true, false]) {
                const found = await readInteraction(channel, at, sequence, includeIncomplete);
                expect(found).toEqual(foldedInteraction(past, sequence, includeIncomplete));
              }
            }
          },
        ),
        { numRuns: rounds(2) },
      );
    },
    roundsTimeoutMs(120_000),
  );

  it(
    'given as a time shows the same as the corresponding sequence',
    async () => {
      await fc.assert(
        fc.asyncProperty(history, async (shape) => {
          const { channel, log } = await play(shape);
          const start = Date.UTC(2026, 0, 1);
          for (let timeMs = start - 3_000; timeMs < start + shape.commands * 1_000 + 25_000; timeMs += 4_700) {
            const count = eventsUntil(log, timeMs);
            const point = { at: new Date(timeMs).toISOString() };
            expect(await readAt(channel, point)).toEqual(folded(pastOf(log.slice(0, count))));
          }
        }),
        { numRuns: rounds(1) },
      );
    },
    roundsTimeoutMs(120_000),
  );
});

describe('the index of the past', () => {
  for (const maxBatch of IN_CAMPAIGN ? [1, 7, 500] : [7]) {
    it(`is rebuilt byte for byte, ${maxBatch} events at a time`, async () => {
      const models = composeReadModels(test.platform);
      await playInteractions(features, { seed: maxBatch, commands: 350, skewMs: 500 });
      const live = await dumpReadModels(test.platform.redis);
      expect(Object.keys(live).some((key) => key.endsWith('history:open'))).toBe(true);
      await rebuild({ feed: test.platform.feed, ...models }, { maxBatch, signal: AbortSignal.timeout(60_000) });
      expect(await dumpReadModels(test.platform.redis)).toEqual(live);
    });
  }
});
