/*
 * A channel's interactions by sequence, filtered by facets, sequences and times. Times in a channel never go back, so a
 * time range is a sequence range: the block index of the channel's history finds the block that contains a time, and the
 * stored interactions of the block give the sequence.
 */
import type { Timestamp } from '#libs/kernel/clock.ts';
import { BLOCK, type CollectionReader, type EntityRef, type HistoryReader } from '#libs/platform/readmodel/index.ts';

import type { ContentRole } from '../interaction.content.ts';
import { channelKeys, type InteractionFacet, type ChannelKeys } from '../../channel.keys.ts';
import type { InteractionView, SequenceBounds } from './present.ts';
import { createdMsOf } from './resource.ts';

/** When interactions were created; exclusive bounds. */
interface CreatedBounds {
  readonly createdAfter?: Timestamp | undefined;
  readonly createdBefore?: Timestamp | undefined;
}

/** The filter and the order of a list of a channel's interactions. */
export interface InteractionFilter extends CreatedBounds {
  readonly contentRole?: ContentRole | undefined;
  readonly turnId?: string | undefined;
  /** Exclusive, as is `beforeSequence`. */
  readonly afterSequence?: number | undefined;
  readonly beforeSequence?: number | undefined;
  readonly order: 'asc' | 'desc';
  readonly includeIncomplete: boolean;
  /** The list ends before the oldest incomplete match, so that a later list that begins after it misses nothing. */
  readonly endsBeforeIncomplete?: boolean;
  /** Appends the updates of tool calls to the page with the newest interactions. */
  readonly includeToolCallUpdates: boolean;
}

/** `size` interactions after the sequence `after` in the order of the list, or from `offset` if `after` is null. */
export interface InteractionPageRequest {
  readonly size: number;
  readonly offset: number;
  readonly after: string | null;
}

/** Sequences read in one step of a count over two indexes. */
const COUNT_STEP = 2_000;
/** Sequences read, at least, in one step of a walk over two indexes. */
const WALK_STEP = 100;
/** Sequences read beyond those of a page: a few may be incomplete. */
const SPARE = 8;

/** The sequences of a channel's interactions that match a filter, for one request. Throws as `CollectionReader`. */
export class FilteredInteractions {
  readonly #collections: CollectionReader;
  readonly #keys: ChannelKeys;
  readonly #filter: InteractionFilter;
  readonly #view: InteractionView;
  /** The index that is walked: of the turn if the filter names one, else of the role, else of all interactions. */
  readonly #set: string;
  #range: SequenceBounds;
  #hiddenOnce: Promise<readonly number[]> | undefined;
  /** The range contains no incomplete match. */
  #isComplete = false;

  /** @param created the sequences of the interactions created within the times of the filter */
  constructor(
    collections: CollectionReader,
    keys: ChannelKeys,
    filter: InteractionFilter,
    view: InteractionView,
    created: SequenceBounds,
  ) {
    this.#collections = collections;
    this.#keys = keys;
    this.#filter = filter;
    this.#view = view;
    this.#set = keys.index(narrowestFacet(filter));
    this.#range = {
      after: Math.max(filter.afterSequence ?? 0, created.after ?? 0) || undefined,
      before: lowest(filter.beforeSequence, created.before, view.end),
    };
  }

  /**
   * Ends the list before its oldest incomplete match, if the filter says so.
   *
   * @returns the sequence of that interaction, or null
   */
  async endBeforeIncomplete(): Promise<number | null> {
    if (this.#filter.endsBeforeIncomplete !== true) return null;
    const hidden = await this.#hidden();
    const [first = null] = await this.#ofRole(hidden);
    if (first !== null) this.#range = { ...this.#range, before: first };
    // In two indexes, one of them may be hidden before it.
    this.#isComplete = first === null ? hidden.length === 0 : hidden[0] === first;
    return first;
  }

  /** The number of matches. Reads the matches only for a role within a turn. */
  async count(): Promise<number> {
    if (isOneIndex(this.#filter)) {
      const counting = this.#collections.count(this.#set, this.#range);
      const [count, hidden] = await Promise.all([counting, this.#showsAll ? [] : this.#hidden()]);
      return count - hidden.length;
    }
    let total = 0;
    for (let rest = this.#range; ;) {
      const found = await this.#collections.numbers(this.#set, { ...rest, order: 'asc', offset: 0, limit: COUNT_STEP });
      total += (await this.#matching(found)).length;
      if (found.length < COUNT_STEP) return total;
      rest = { ...rest, after: found.at(-1) };
    }
  }

  /**
   * The sequences of a page, and one more if there are more. Walks the index until the page is full, and skips
   * interactions that do not match. Each step starts after the last sequence of the previous one, not at an offset, so
   * concurrent posts do not shift it.
   */
  async page({ size, offset, after }: InteractionPageRequest): Promise<number[]> {
    const wanted = size + 1;
    const { order } = this.#filter;
    let range = after === null ? this.#range : this.#rangeAfter(Number(after));
    const limit = isOneIndex(this.#filter) ? wanted + SPARE : Math.max(wanted, WALK_STEP);
    let toSkip = offset;
    // Matches in two indexes cannot be skipped by rank.
    if (toSkip > 0 && isOneIndex(this.#filter)) {
      const [last] = await this.#collections.numbers(this.#set, { ...range, order, offset: toSkip - 1, limit: 1 });
      if (last === undefined) return [];
      // The offset does not count incomplete interactions.
      toSkip = await this.#hiddenUpTo(last);
      range = this.#rangeAfter(last);
    }
    const kept: number[] = [];
    while (kept.length < wanted) {
      const reading = this.#collections.numbers(this.#set, { ...range, order, offset: 0, limit });
      const [found] = await Promise.all([reading, this.#showsAll ? [] : this.#hidden()]);
      const matching = await this.#matching(found);
      kept.push(...matching.slice(toSkip));
      toSkip = Math.max(0, toSkip - matching.length);
      const last = found.at(-1);
      if (last === undefined || found.length < limit) break;
      range = this.#rangeAfter(last);
    }
    return kept.slice(0, wanted);
  }

  #rangeAfter(sequence: number): SequenceBounds {
    const { after, before } = this.#range;
    return this.#filter.order === 'asc'
      ? { after: Math.max(after ?? 0, sequence), before }
      : { after, before: Math.min(before ?? Infinity, sequence) };
  }

  /** The matches among sequences of the index. */
  async #matching(found: readonly number[]): Promise<readonly number[]> {
    if (this.#showsAll || found.length === 0) return this.#ofRole(found);
    const hidden = new Set(await this.#hidden());
    return this.#ofRole(found.filter((sequence) => !hidden.has(sequence)));
  }

  get #showsAll(): boolean {
    return this.#filter.includeIncomplete || this.#isComplete;
  }

  /** The index of a turn does not contain roles, so they are checked here. */
  async #ofRole(found: readonly number[]): Promise<readonly number[]> {
    if (isOneIndex(this.#filter)) return found;
    const ofRole = await this.#collections.contained(this.#keys.index(`role=${this.#filter.contentRole}`), found);
    return found.filter((_, index) => ofRole[index] === true);
  }

  async #hiddenUpTo(sequence: number): Promise<number> {
    if (this.#showsAll) return 0;
    const isAscending = this.#filter.order === 'asc';
    return (await this.#hidden()).filter((one) => (isAscending ? one <= sequence : one >= sequence)).length;
  }

  /** The incomplete interactions of the index: few, because their number per channel is limited. Read once. */
  #hidden(): Promise<readonly number[]> {
    return (this.#hiddenOnce ??= this.#readHidden());
  }

  async #readHidden(): Promise<readonly number[]> {
    const incomplete = await this.#view.incompleteIn(this.#keys, this.#range);
    if (this.#set === this.#keys.index('all')) return incomplete;
    const listed = await this.#collections.contained(this.#set, incomplete);
    return incomplete.filter((_, index) => listed[index] === true);
  }
}

function lowest(...bounds: readonly (number | undefined)[]): number | undefined {
  const low = Math.min(...bounds.map((bound) => bound ?? Infinity));
  return low === Infinity ? undefined : low;
}

/** Whether one index has exactly the interactions with the facets of the filter. */
export function isOneIndex({ turnId, contentRole }: InteractionFilter): boolean {
  return turnId === undefined || contentRole === undefined;
}

export function narrowestFacet({ turnId, contentRole }: InteractionFilter): InteractionFacet {
  if (turnId !== undefined) return `turn=${turnId}`;
  return contentRole === undefined ? 'all' : `role=${contentRole}`;
}

interface TimeSources {
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
  channel: EntityRef,
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
 * `last`: all interactions up to this sequence were created by `timeMs`. `next`: all from this sequence on were created
 * later. Interactions that are posted concurrently are between the two.
 */
async function createdBy(
  { collections, history }: TimeSources,
  channel: EntityRef,
  timeMs: number,
): Promise<{ readonly last: number; readonly next: number }> {
  const first = await history.blockBegunBy(channel, timeMs);
  if (first === null) return { last: 0, next: 1 };
  const { index, documents } = channelKeys(channel.organizationId, channel.id);
  const next = first + BLOCK + 1;
  const inBlock = { after: Number(first), before: next, order: 'asc', offset: 0, limit: BLOCK } as const;
  const sequences = await collections.numbers(index('all'), inBlock);
  const stored = await collections.fields(documents, sequences);
  const later = stored.findIndex((document) => document !== null && createdMsOf(document) > timeMs);
  const found = sequences[later];
  return found === undefined ? { last: sequences.at(-1) ?? first, next } : { last: found - 1, next: found };
}
