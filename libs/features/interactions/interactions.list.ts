import type { Timestamp } from '#libs/kernel/clock.ts';
import type { CollectionReader } from '#libs/platform/readmodel/index.ts';

import type { ContentRole } from './interaction.content.ts';
import type { InteractionFacet, InteractionKeys } from './interactions.keys.ts';
import { rangesCreated } from './interactions.times.ts';
import type { TimeBounds } from './interactions.times.ts';
import { complete } from './interactions.view.ts';
import type { InteractionView, SequenceBounds } from './interactions.view.ts';

/** What a list of a channel's interactions is narrowed to, and in which order it comes. */
export interface InteractionFilter {
  readonly contentRole?: ContentRole | undefined;
  readonly turnId?: string | undefined;
  /** Exclusive bounds. */
  readonly afterSequence?: number | undefined;
  readonly beforeSequence?: number | undefined;
  /** When they were created; exclusive bounds. */
  readonly createdAfter?: Timestamp | undefined;
  readonly createdBefore?: Timestamp | undefined;
  readonly order: 'asc' | 'desc';
  readonly includeIncomplete: boolean;
  /** Behind the items of the page that ends or begins with the newest. */
  readonly includeToolCallUpdates: boolean;
}

/** Which part of a list: `size` after the sequence `after` in the order of the list, or else from an offset. */
export interface InteractionPlaceInList {
  readonly size: number;
  readonly offset: number;
  readonly after: string | null;
}

/** Looked at in one step of a count that no index gives by itself. */
const COUNT_STEP = 2_000;
/** Looked at, at least, in one step of a walk that has to look at each. */
const WALK_STEP = 100;
/** Looked at beyond what is wanted where an index gives it: a few may be incomplete. */
const SPARE = 8;

/**
 * The sequences of a channel's interactions that fit a filter, for one request. What it throws are the faults
 * of `CollectionReader` and of the view.
 */
export class FilteredInteractions {
  readonly #collections: CollectionReader;
  readonly #keys: InteractionKeys;
  readonly #filter: InteractionFilter;
  readonly #view: InteractionView;
  /** The index that is walked, by sequence. */
  readonly #set: string;
  readonly #ranges: Promise<readonly SequenceBounds[]>;

  constructor(collections: CollectionReader, keys: InteractionKeys, filter: InteractionFilter, view: InteractionView) {
    this.#collections = collections;
    this.#keys = keys;
    this.#filter = filter;
    this.#view = view;
    this.#set = keys.index(narrowestFacet(filter));
    const bounds = { after: filter.afterSequence, before: lowest(filter.beforeSequence, view.end) };
    const times = timesOf(filter);
    this.#ranges = times === null ? Promise.resolve([bounds]) : rangesCreated(collections, keys, times, bounds);
  }

  /** How many there are. Costs the same however many, but for a role within a turn. */
  async count(): Promise<number> {
    const counts = await Promise.all((await this.#ranges).map((range) => this.#countIn(range)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /**
   * Those of a page, and one more if there are more. Goes through the index until the page is full, leaving
   * out what is not to be shown. Each step begins after the last one's end, not at an offset: what arrives
   * meanwhile moves nothing.
   */
  async page({ size, offset, after }: InteractionPlaceInList): Promise<number[]> {
    const wanted = size + 1;
    const { order } = this.#filter;
    let ranges = after === null ? await this.#inOrder() : this.#behind(await this.#inOrder(), Number(after));
    const looksAtEach = !isOneIndex(this.#filter) || ranges.length > 1;
    const limit = looksAtEach ? Math.max(wanted, WALK_STEP) : wanted + SPARE;
    let toSkip = offset;
    if (toSkip > 0) ({ ranges, toSkip } = await this.#skipped(ranges, toSkip));
    const kept: number[] = [];
    while (kept.length < wanted && ranges.length > 0) {
      const found = await this.#collections.numbers(this.#set, { ...around(ranges), order, offset: 0, limit });
      const fitting = await this.#fitting(found.filter((sequence) => ranges.some((range) => isIn(range, sequence))));
      kept.push(...fitting.slice(toSkip));
      toSkip = Math.max(0, toSkip - fitting.length);
      const last = found.at(-1);
      if (last === undefined || found.length < limit) break;
      ranges = this.#behind(ranges, last);
    }
    return kept.slice(0, wanted);
  }

  async #inOrder(): Promise<readonly SequenceBounds[]> {
    const ranges = await this.#ranges;
    return this.#filter.order === 'asc' ? ranges : ranges.toReversed();
  }

  /** What of the ranges comes after a sequence, in the order of the list. */
  #behind(ranges: readonly SequenceBounds[], sequence: number): readonly SequenceBounds[] {
    return ranges
      .map(({ after, before }) =>
        this.#filter.order === 'asc'
          ? { after: Math.max(after ?? 0, sequence), before }
          : { after, before: Math.min(before ?? Infinity, sequence) },
      )
      .filter(({ after, before }) => (before ?? Infinity) - (after ?? 0) > 1);
  }

  /** Leaves out the ranges that are skipped as a whole, and jumps into the next: how many more to skip there. */
  async #skipped(
    ranges: readonly SequenceBounds[],
    toSkip: number,
  ): Promise<{ readonly ranges: readonly SequenceBounds[]; readonly toSkip: number }> {
    let left = toSkip;
    for (const [index, range] of ranges.entries()) {
      const count = await this.#countIn(range);
      if (left >= count) {
        left -= count;
        continue;
      }
      const rest = ranges.slice(index);
      // What several indexes list together, must be looked at.
      if (left === 0 || !isOneIndex(this.#filter)) return { ranges: rest, toSkip: left };
      const { order } = this.#filter;
      const [last] = await this.#collections.numbers(this.#set, { ...range, order, offset: left - 1, limit: 1 });
      if (last === undefined) return { ranges: rest.slice(1), toSkip: 0 };
      // Those that are jumped over, but are not to be shown, do not count.
      return { ranges: this.#behind(rest, last), toSkip: await this.#hiddenUpTo(last, range) };
    }
    return { ranges: [], toSkip: 0 };
  }

  async #countIn(range: SequenceBounds): Promise<number> {
    if (isOneIndex(this.#filter)) {
      const count = await this.#collections.count(this.#set, range);
      return this.#filter.includeIncomplete ? count : count - (await this.#hidden(range)).length;
    }
    let total = 0;
    for (let rest = range; ;) {
      const found = await this.#collections.numbers(this.#set, { ...rest, order: 'asc', offset: 0, limit: COUNT_STEP });
      total += (await this.#fitting(found)).length;
      if (found.length < COUNT_STEP) return total;
      rest = { ...rest, after: found.at(-1) };
    }
  }

  /** Those of the index that are to be shown. A turn is walked through its own index, so a role is left to check. */
  async #fitting(found: readonly number[]): Promise<readonly number[]> {
    const shown = this.#filter.includeIncomplete ? found : await complete(this.#view, this.#keys, found);
    if (isOneIndex(this.#filter)) return shown;
    const ofRole = await this.#collections.contained(this.#keys.index(`role=${this.#filter.contentRole}`), shown);
    return shown.filter((_, index) => ofRole[index] === true);
  }

  /** How many of a range that are not shown come before the one after a sequence, in the order of the list. */
  async #hiddenUpTo(sequence: number, range: SequenceBounds): Promise<number> {
    if (this.#filter.includeIncomplete) return 0;
    const isAscending = this.#filter.order === 'asc';
    return (await this.#hidden(range)).filter((one) => (isAscending ? one <= sequence : one >= sequence)).length;
  }

  /** The incomplete ones of the index: never many, for a channel may have few. */
  async #hidden(range: SequenceBounds): Promise<number[]> {
    const incomplete = await this.#view.incompleteIn(this.#keys, range);
    const listed = await this.#collections.contained(this.#set, incomplete);
    return incomplete.filter((_, index) => listed[index] === true);
  }
}

/** Null where no time is asked for. */
export function timesOf({ createdAfter, createdBefore }: InteractionFilter): TimeBounds | null {
  if (createdAfter === undefined && createdBefore === undefined) return null;
  return {
    after: createdAfter === undefined ? undefined : Date.parse(createdAfter),
    before: createdBefore === undefined ? undefined : Date.parse(createdBefore),
  };
}

/** From the lowest to the highest of ranges, which are in either order. */
function around(ranges: readonly SequenceBounds[]): SequenceBounds {
  const ends = [ranges[0], ranges.at(-1)];
  const high = Math.max(...ends.map((range) => range?.before ?? Infinity));
  return {
    after: Math.min(...ends.map((range) => range?.after ?? 0)),
    before: high === Infinity ? undefined : high,
  };
}

function isIn({ after, before }: SequenceBounds, sequence: number): boolean {
  return sequence > (after ?? 0) && sequence < (before ?? Infinity);
}

function lowest(bound: number | undefined, end: number): number | undefined {
  const low = Math.min(bound ?? Infinity, end);
  return low === Infinity ? undefined : low;
}

/** Whether all that the filter asks for is the contents of one index. */
function isOneIndex({ turnId, contentRole }: InteractionFilter): boolean {
  return turnId === undefined || contentRole === undefined;
}

function narrowestFacet({ turnId, contentRole }: InteractionFilter): InteractionFacet {
  if (turnId !== undefined) return `turn=${turnId}`;
  return contentRole === undefined ? 'all' : `role=${contentRole}`;
}
