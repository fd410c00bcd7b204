/*
 * Times as ranges of sequences. Times in a channel never go back, so the interactions created within a span of time
 * have consecutive sequences: the block index of the channel's history finds the 100 revisions in which a time falls,
 * and the stored interactions of these tell the sequence.
 */
import type { Timestamp } from '#libs/kernel/clock.ts';
import { BLOCK } from '#libs/platform/readmodel/index.ts';
import type { CollectionReader, HistoricEntity, HistoryReader } from '#libs/platform/readmodel/index.ts';

import { interactionKeys } from './interactions.keys.ts';
import type { SequenceBounds } from './interactions.view.ts';
import { createdMsOf } from './stored-interaction.ts';

/** When interactions were created; exclusive bounds. */
export interface CreatedBounds {
  readonly createdAfter?: Timestamp | undefined;
  readonly createdBefore?: Timestamp | undefined;
}

/** Where the times of a channel's interactions are read. */
export interface TimeSources {
  readonly collections: CollectionReader;
  readonly history: HistoryReader;
}

/**
 * The sequences of the interactions that were created within the bounds. For logs of earlier versions whose times go
 * back, see docs/decisions/0043-times-in-a-stream-never-go-back.md.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function sequencesCreated(
  sources: TimeSources,
  channel: HistoricEntity,
  { createdAfter, createdBefore }: CreatedBounds,
): Promise<SequenceBounds> {
  const [after, before] = await Promise.all([
    createdAfter === undefined ? undefined : createdBy(sources, channel, Date.parse(createdAfter)),
    createdBefore === undefined ? undefined : createdBy(sources, channel, Date.parse(createdBefore) - 1),
  ]);
  return { after: after && after.next - 1, before: before && before.last + 1 };
}

export function isWithin(timeMs: number, { createdAfter, createdBefore }: CreatedBounds): boolean {
  if (createdAfter !== undefined && timeMs <= Date.parse(createdAfter)) return false;
  return createdBefore === undefined || timeMs < Date.parse(createdBefore);
}

/**
 * `last`: no interaction up to this sequence was created later. `next`: none from this sequence on was created by then.
 * What is posted meanwhile lies between the two.
 */
async function createdBy(
  { collections, history }: TimeSources,
  channel: HistoricEntity,
  timeMs: number,
): Promise<{ readonly last: number; readonly next: number }> {
  const first = await history.blockBegunBy(channel, timeMs);
  if (first === null) return { last: 0, next: 1 };
  const { index, documents } = interactionKeys(channel.organizationId, channel.id);
  const next = first + BLOCK + 1;
  const inBlock = { after: Number(first), before: next, order: 'asc', offset: 0, limit: BLOCK } as const;
  const sequences = await collections.numbers(index('all'), inBlock);
  const stored = await collections.fields(documents, sequences);
  const later = stored.findIndex((document) => document !== null && createdMsOf(document) > timeMs);
  const found = sequences[later];
  return found === undefined ? { last: sequences.at(-1) ?? first, next } : { last: found - 1, next: found };
}
