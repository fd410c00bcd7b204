import { z } from 'zod';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { SentPage } from '#libs/platform/http/index.ts';
import { entityKeys, type EntityRef } from '#libs/platform/readmodel/index.ts';
import { type FunctionCall, FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { CHANNEL_READ_MODEL, channelKeys } from '../../channel.keys.ts';
import { type InteractionFilter, type InteractionPageRequest, isOneIndex, narrowestFacet } from './list.ts';

export interface InteractionPage {
  /** Of the newest event of the channel that the page reflects. It reflects all events up to it, and none after it. */
  readonly sequence: ChannelSequence;
  readonly items: readonly Buffer[];
  readonly total: number;
  readonly hasNext: boolean;
  /** Sequence that the next page starts after, in the order of the list. */
  readonly last: string | null;
  /** Sequence of the incomplete interaction that the list ends before. */
  readonly oldestIncomplete: number | null;
  /** Of a page that is kept. */
  readonly sent?: SentPage;
}

export type FoundPage = Omit<InteractionPage, 'sequence'>;

/** The interactions of a page in the present. */
export interface IndexedPage {
  /** Of the channel, with all of the following. */
  readonly revision: string;
  /** Length of the whole list. */
  readonly total: number;
  /** Sequence of the incomplete interaction that the list ends before. */
  readonly oldestIncomplete: number | null;
  /** In the order of the list. */
  readonly sequences: readonly number[];
  readonly hasNext: boolean;
  /** Those of {@link sequences} that are incomplete. */
  readonly incomplete: ReadonlySet<number>;
  readonly hasMarks: boolean;
}

/** Memory of an item of a page beside its bytes. */
const ITEM_BYTES = 128;

/** A missing channel last: zod tries the forms in turn, and makes an issue for each member of those that do not fit. */
const reply = z.union([
  z.tuple([z.string(), z.int(), z.string(), z.string(), z.string(), z.int()]),
  z.tuple([z.null()]),
]);

/** Finds the interactions of a page in one call of Redis, for the filters that one index answers. */
export class PageIndex {
  readonly #functions: FunctionLibrary;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/interaction-page.lua', import.meta.url));
  }

  /** A role within a turn, and times, need several indexes: `FilteredInteractions` reads them step by step. */
  answers(filter: InteractionFilter): boolean {
    return isOneIndex(filter) && filter.createdAfter === undefined && filter.createdBefore === undefined;
  }

  /** Null if the read models have no such channel. @throws `Fault` `store_unavailable` */
  async find(channel: EntityRef, filter: InteractionFilter, page: InteractionPageRequest): Promise<IndexedPage | null> {
    const [found] = await this.#functions.callAll([callOf(channel, filter, page)]);
    const [revision, total, oldest, all, open, marks] = reply.parse(found);
    if (revision === null) return null;
    const sequences = numbersOf(all);
    const shown = sequences.slice(0, page.size);
    return {
      revision,
      total,
      oldestIncomplete: oldest === '' ? null : Number(oldest),
      sequences: shown,
      hasNext: sequences.length > page.size,
      incomplete: new Set(numbersOf(open)),
      hasMarks: marks > 0,
    };
  }
}

function callOf(channel: EntityRef, filter: InteractionFilter, page: InteractionPageRequest): FunctionCall {
  const { organizationId, id } = channel;
  const keys = channelKeys(organizationId, id);
  const { revision } = entityKeys(CHANNEL_READ_MODEL, organizationId, id);
  const { order, afterSequence = 0, beforeSequence = Number.MAX_SAFE_INTEGER } = filter;
  const hides = filter.endsBeforeIncomplete === true ? 'end' : 'hidden';
  return {
    name: 'parley_interaction_page_v1',
    keys: [revision, keys.index(narrowestFacet(filter)), keys.index('incomplete'), keys.marks],
    args: [
      order,
      afterSequence,
      beforeSequence,
      page.after ?? '',
      page.offset,
      page.size,
      filter.includeIncomplete ? 'shown' : hides,
    ],
  };
}

function numbersOf(text: string): number[] {
  return text === '' ? [] : text.split(' ').map(Number);
}

/** With all items in one block. */
export function packedPage(page: FoundPage): [FoundPage, number] {
  const bytes = Buffer.concat(page.items);
  let end = 0;
  const items = page.items.map(({ length }) => bytes.subarray(end, (end += length)));
  // Counted twice: for the items, and for the body that is sent.
  return [{ ...page, items, sent: { meta: '', body: null } }, 2 * bytes.length + items.length * ITEM_BYTES];
}
