/*
 * Finds interactions by when they were created, in the order of their sequences. The two orders differ where the
 * clocks of gateways do, so a time is no sequence. What is stored: the time of each interaction, side by side in
 * one string, and the earliest and the latest time of whole stretches of sequences. A stretch that lies within the
 * times that are asked for, or outside of them, is not looked into; the few that do both are, down to the single
 * interaction. So it costs a few reads where clocks agree, however old the channel, and more with each stretch in
 * which they do not.
 */
import type { CollectionReader, WriteOperation } from '#libs/platform/readmodel/index.ts';

import type { Interaction } from './interaction.decider.ts';
import type { InteractionKeys } from './interactions.keys.ts';
import type { SequenceBounds } from './interactions.view.ts';

/** Exclusive bounds, in Unix milliseconds. */
export interface TimeBounds {
  readonly after?: number | undefined;
  readonly before?: number | undefined;
}

/** Of one interaction: Unix milliseconds, big-endian; 0 where the sequence is not that of an interaction. */
const BYTES = 6;
/** Sequences in a stretch: a few of the long ones say where to look at the short ones. */
const STRETCHES = [16_384, 128] as const;

const earliest = (length: number, first: number): string => `${length} ${first} earliest`;
/** Scored by the negative time: of all members of the set, the lowest score is kept. */
const latest = (length: number, first: number): string => `${length} ${first} latest`;

/** What is written of the interactions that one run of events has posted. */
export function timeWrites(posted: readonly Interaction[], keys: InteractionKeys): WriteOperation[] {
  if (posted.length === 0) return [];
  const sequences = posted.map(({ sequence }) => sequence);
  const [first, last] = [Math.min(...sequences), Math.max(...sequences)];
  // A run has all events from its first to its last: what is not posted in between is not an interaction.
  const times = Buffer.alloc((last - first + 1) * BYTES);
  const scores = new Map<string, number>();
  const lower = (member: string, score: number) => {
    scores.set(member, Math.min(score, scores.get(member) ?? Infinity));
  };
  for (const { sequence, createdAt } of posted) {
    // Even a clock that is decades off must not make an event that cannot be stored.
    const time = Math.max(1, Date.parse(createdAt));
    times.writeUIntBE(time, (sequence - first) * BYTES, BYTES);
    for (const length of STRETCHES) {
      const begin = sequence - (sequence % length);
      lower(earliest(length, begin), time);
      lower(latest(length, begin), -time);
    }
  }
  // Not absolute, but the same however often and in whichever order: events of the log do not go away.
  const args = ['LT', ...[...scores].flatMap(([member, score]) => [score, member])];
  return [
    { command: 'SETRANGE', key: keys.times, args: [first * BYTES, times] },
    { command: 'ZADD', key: keys.stretches, args },
  ];
}

/** A part of the channel, from one sequence to another, both inclusive. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  /** Whether its interactions were created within the times; `open` if some were, or that is not known yet. */
  readonly created: 'within' | 'outside' | 'open' | 'nothing there';
}

/**
 * The ranges of sequences in which every interaction was created within `times`, and outside of which none was,
 * in ascending order.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function rangesCreated(
  collections: CollectionReader,
  keys: InteractionKeys,
  times: TimeBounds,
  bounds: SequenceBounds,
): Promise<SequenceBounds[]> {
  const newest = (await collections.byteLength(keys.times)) / BYTES - 1;
  const from = (bounds.after ?? 0) + 1;
  const to = Math.min((bounds.before ?? Infinity) - 1, newest);
  let stretches: Stretch[] = from > to ? [] : [{ from, to, created: 'open' }];
  for (const length of STRETCHES) stretches = await judged(collections, keys, times, cut(stretches, length), length);
  const single = await Promise.all(
    stretches.map((one) => (one.created === 'open' ? lookInto(collections, keys, times, one) : [one])),
  );
  return joined(single.flat());
}

/** Those that are not judged yet, cut where stretches of a length begin. */
function cut(stretches: readonly Stretch[], length: number): Stretch[] {
  return stretches.flatMap((stretch) => {
    if (stretch.created !== 'open') return [stretch];
    const pieces: Stretch[] = [];
    for (let from = stretch.from; from <= stretch.to;) {
      const to = Math.min(stretch.to, from - (from % length) + length - 1);
      pieces.push({ from, to, created: 'open' });
      from = to + 1;
    }
    return pieces;
  });
}

async function judged(
  collections: CollectionReader,
  keys: InteractionKeys,
  times: TimeBounds,
  stretches: readonly Stretch[],
  length: number,
): Promise<Stretch[]> {
  const open = stretches.filter(({ created }) => created === 'open');
  const members = open.flatMap(({ from }) => {
    const begin = from - (from % length);
    return [earliest(length, begin), latest(length, begin)];
  });
  const scores = (await collections.scores(keys.stretches, members)).values();
  return stretches.map((stretch) => {
    if (stretch.created !== 'open') return stretch;
    const [low, high] = [scores.next().value ?? null, scores.next().value ?? null];
    if (low === null || high === null) return { ...stretch, created: 'nothing there' };
    if (isWithin(low, times) && isWithin(-high, times)) return { ...stretch, created: 'within' };
    const isOutside = low >= (times.before ?? Infinity) || -high <= (times.after ?? -Infinity);
    return isOutside ? { ...stretch, created: 'outside' } : stretch;
  });
}

async function lookInto(
  collections: CollectionReader,
  keys: InteractionKeys,
  times: TimeBounds,
  { from, to }: Stretch,
): Promise<Stretch[]> {
  const stored = await collections.bytes(keys.times, from * BYTES, (to + 1) * BYTES - 1);
  const found: Stretch[] = [];
  for (let at = 0; at + BYTES <= stored.length; at += BYTES) {
    const time = stored.readUIntBE(at, BYTES);
    const sequence = from + at / BYTES;
    const created = time === 0 ? 'nothing there' : isWithin(time, times) ? 'within' : 'outside';
    found.push({ from: sequence, to: sequence, created });
  }
  return found;
}

export function isWithin(time: number, { after, before }: TimeBounds): boolean {
  return time > (after ?? -Infinity) && time < (before ?? Infinity);
}

/** What lies within, as ranges that go on across stretches where nothing is. */
function joined(stretches: readonly Stretch[]): SequenceBounds[] {
  const ranges: { after: number; before: number }[] = [];
  let isInRange = false;
  for (const { from, to, created } of stretches) {
    if (created === 'nothing there') continue;
    const last = ranges.at(-1);
    if (created !== 'within') isInRange = false;
    else if (isInRange && last !== undefined) last.before = to + 1;
    else {
      ranges.push({ after: from - 1, before: to + 1 });
      isInRange = true;
    }
  }
  return ranges;
}
