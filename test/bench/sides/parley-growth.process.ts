/** The operations of the growth rows, one at a time, in channels of each size in turn. */
import type { ChannelSequence } from '#libs/kernel/event.ts';
import { composeFeatures, type Features } from '#services/features.ts';

import { metadataFor } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';
import {
  type ChannelsOfSize,
  type GrowthAnswer,
  type GrowthTask,
  type Operation,
  PAGE,
  type Size,
} from '../growth.benchmark.ts';
import { openBenchPlatform } from './bench-platform.ts';
import { inTurn, poster, type Work } from './posts-in-turn.ts';

/** Posts by processes with empty memory, in channels of each size. */
const COLD = 40;
const FILTER = { order: 'desc', includeIncomplete: false, includeToolCallUpdates: false } as const;
const SHOWN = { reader: { userId: null }, includeIncomplete: false };
const { organizationId } = metadataFor('');

const SIZES: readonly Size[] = ['small', 'middle', 'large'];

answerTasks<GrowthTask, GrowthAnswer>(async ({ sizes, seconds, ...urls }) => {
  const { platform, check } = await openBenchPlatform(urls);
  const features = composeFeatures(platform);
  const works = SIZES.map((size) => ({
    ...reads(features, sizes[size]),
    post: poster(features, postedTo(sizes[size])),
  }));

  // A channel is loaded at its first post.
  for (const [index, size] of SIZES.entries()) for (const _ of sizes[size].channels) await works[index]?.post();
  const medians = new Map<Operation, readonly number[]>();
  for (const operation of ['read', 'page', 'cursor', 'number', 'asOf', 'pageAsOf', 'post'] as const) {
    const turns = works.map((work) => work[operation]);
    medians.set(operation, await inTurn(turns, seconds));
  }
  const cold = SIZES.map((size) => {
    const strangers = Array.from({ length: COLD }, () =>
      poster(composeFeatures(platform), postedTo(sizes[size])),
    ).values();
    return async (): Promise<void> => strangers.next().value?.();
  });
  medians.set('cold', await inTurn(cold, seconds, COLD));
  check();
  const ofSize = (index: number) =>
    Object.fromEntries([...medians].map(([operation, all]) => [operation, all[index] ?? Number.NaN]));
  return Object.fromEntries(SIZES.map((size, index) => [size, ofSize(index)])) as GrowthAnswer;
});

function postedTo({ channels }: ChannelsOfSize): readonly string[] {
  return channels.length > 1 ? channels.slice(1) : channels;
}

/** Reads the same amount in channels of all sizes: the smallest has one page. */
function reads(
  { channels: { queries } }: Features,
  { channels, events }: ChannelsOfSize,
): Record<Exclude<Operation, 'post' | 'cold'>, Work> {
  const [channelId = ''] = channels;
  const isSmall = events <= PAGE + 1;
  const middle = Math.floor(events / 2) as ChannelSequence;
  const point = { sequence: isSmall ? events : middle };
  const first = { size: PAGE, offset: 0, after: null };
  const read = async (asOf?: typeof point): Promise<void> => {
    const place = { channelId, sequence: middle };
    const found = await queries.at(organizationId, channelId, asOf, (view) =>
      queries.interaction(organizationId, place, SHOWN, view),
    );
    if (found === null) throw new Error('an interaction is not there');
  };
  const page = async (
    place: { readonly size: number; readonly offset: number; readonly after: string | null },
    asOf?: typeof point,
  ): Promise<void> => {
    const found = await queries.at(organizationId, channelId, asOf, (view) =>
      queries.list(organizationId, channelId, FILTER, place, SHOWN.reader, view),
    );
    if (found?.items.length !== PAGE) throw new Error(`${found?.items.length} items on a page`);
  };
  return {
    read: () => read(),
    page: () => page(first),
    cursor: () => page({ ...first, after: isSmall ? String(events + 1) : String(middle) }),
    number: () => page({ ...first, offset: isSmall ? 0 : middle - (middle % PAGE) }),
    asOf: () => read(point),
    pageAsOf: () => page(first, point),
  };
}
