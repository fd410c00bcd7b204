import type { CollectionReader } from '#libs/platform/readmodel/index.ts';

import type { ContentRole } from './interaction.content.ts';
import type { InteractionFacet, InteractionKeys } from './interactions.keys.ts';
import type { CreatedBounds } from './interactions.times.ts';
import { complete } from './interactions.view.ts';
import type { InteractionView, SequenceBounds } from './interactions.view.ts';

/** What a list of a channel's interactions is narrowed to, and in which order it comes. */
export interface InteractionFilter extends CreatedBounds {
  readonly contentRole?: ContentRole | undefined;
  readonly turnId?: string | undefined;
  /** Exclusive bounds. */
  readonly afterSequence?: number | undefined;
  readonly beforeSequence?: number | undefined;
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
  readonly #range: SequenceBounds;

  /** @param created the sequences of what was created within the times of the filter */
  constructor(
    collections: CollectionReader,
    keys: InteractionKeys,
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

  /** How many there are. Costs the same however many, but for a role within a turn. */
  async count(): Promise<number> {
    if (isOneIndex(this.#filter)) {
      const count = await this.#collections.count(this.#set, this.#range);
      return this.#filter.includeIncomplete ? count : count - (await this.#hidden()).length;
    }
    let total = 0;
    for (let rest = this.#range; ;) {
      const found = await this.#collections.numbers(this.#set, { ...rest, order: 'asc', offset: 0, limit: COUNT_STEP });
      total += (await this.#fitting(found)).length;
      if (found.length < COUNT_STEP) return total;
      rest = { ...rest, after: found.at(-1) };
    }
  }

  /**
   * Those of a page, and one more if there are more. Goes through the index until the page is full, leaving
   * out what is not to be shown. Each step begins after the last one's end, not at an offset: what arrives
   * meanwhile moves nothing.
   */
  async page({ size, offset, after }: InteractionPlaceInList): Promise<number[]> {
    const wanted = size + 1;
    const { order } = this.#filter;
    let range = after === null ? this.#range : this.#behind(Number(after));
    const limit = isOneIndex(this.#filter) ? wanted + SPARE : Math.max(wanted, WALK_STEP);
    let toSkip = offset;
    // What several indexes list together, must be looked at.
    if (toSkip > 0 && isOneIndex(this.#filter)) {
      const [last] = await this.#collections.numbers(this.#set, { ...range, order, offset: toSkip - 1, limit: 1 });
      if (last === undefined) return [];
      // Those that are jumped over, but are not to be shown, do not count.
      toSkip = await this.#hiddenUpTo(last);
      range = this.#behind(last);
    }
    const kept: number[] = [];
    while (kept.length < wanted) {
      const found = await this.#collections.numbers(this.#set, { ...range, order, offset: 0, limit });
      const fitting = await this.#fitting(found);
      kept.push(...fitting.slice(toSkip));
      toSkip = Math.max(0, toSkip - fitting.length);
      const last = found.at(-1);
      if (last === undefined || found.length < limit) break;
      range = this.#behind(last);
    }
    return kept.slice(0, wanted);
  }

  /** What of the range comes after a sequence, in the order of the list. */
  #behind(sequence: number): SequenceBounds {
    const { after, before } = this.#range;
    return this.#filter.order === 'asc'
      ? { after: Math.max(after ?? 0, sequence), before }
      : { after, before: Math.min(before ?? Infinity, sequence) };
  }

  /** Those of the index that are to be shown. A turn is walked through its own index, so a role is left to check. */
  async #fitting(found: readonly number[]): Promise<readonly number[]> {
    const shown = this.#filter.includeIncomplete ? found : await complete(this.#view, this.#keys, found);
    if (isOneIndex(this.#filter)) return shown;
    const ofRole = await this.#collections.contained(this.#keys.index(`role=${this.#filter.contentRole}`), shown);
    return shown.filter((_, index) => ofRole[index] === true);
  }

  /** How many that are not shown come before the one after a sequence, in the order of the list. */
  async #hiddenUpTo(sequence: number): Promise<number> {
    if (this.#filter.includeIncomplete) return 0;
    const isAscending = this.#filter.order === 'asc';
    return (await this.#hidden()).filter((one) => (isAscending ? one <= sequence : one >= sequence)).length;
  }

  /** The incomplete ones of the index: never many, for a channel may have few. */
  async #hidden(): Promise<number[]> {
    const incomplete = await this.#view.incompleteIn(this.#keys, this.#range);
    const listed = await this.#collections.contained(this.#set, incomplete);
    return incomplete.filter((_, index) => listed[index] === true);
  }
}

function lowest(...bounds: readonly (number | undefined)[]): number | undefined {
  const low = Math.min(...bounds.map((bound) => bound ?? Infinity));
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
