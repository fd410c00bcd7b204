import { CHANNEL } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CollectionReader, EntityReader, HistoryPoint, HistoryReader } from '#libs/platform/readmodel/index.ts';

import { annotated } from './interaction.annotations.ts';
import type { Annotations, Reader } from './interaction.annotations.ts';
import type { ContentRole } from './interaction.content.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { PastInteractions } from './interactions.history.ts';
import { interactionKeys } from './interactions.keys.ts';
import type { InteractionFacet, InteractionKeys } from './interactions.keys.ts';
import { sequenceOfChild } from './interactions.projection.ts';
import { PresentInteractions } from './interactions.view.ts';
import type { InteractionView, SequenceBounds } from './interactions.view.ts';
import type { ToolCallUpdates } from './tool-call-updates.ts';

/** What a list of a channel's interactions is narrowed to, and in which order it comes. */
export interface InteractionFilter {
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

export interface InteractionPage {
  readonly items: readonly Buffer[];
  readonly total: number;
  readonly hasNext: boolean;
  /** Sequence that the next page starts after, in the order of the list. */
  readonly last: string | null;
}

/** To whom interactions are shown, and which. */
export interface Audience {
  /** Null: as it is stored, without what was added. */
  readonly reader: Reader | null;
  readonly includeIncomplete: boolean;
}

/** More descendants than this are not shown below one interaction. */
const MAX_NESTED = 2_000;

/**
 * Reads of interactions: ready bytes from the read model, with what the reader is to see added. All throw the
 * faults of `EntityReader`.
 */
export class InteractionQueries {
  readonly #entities: EntityReader;
  readonly #collections: CollectionReader;
  readonly #annotations: Annotations;
  readonly #updates: ToolCallUpdates;
  readonly #history: HistoryReader;
  readonly #present: InteractionView;

  constructor(
    entities: EntityReader,
    collections: CollectionReader,
    history: HistoryReader,
    { annotations, updates }: { readonly annotations: Annotations; readonly updates: ToolCallUpdates },
  ) {
    this.#updates = updates;
    this.#entities = entities;
    this.#collections = collections;
    this.#annotations = annotations;
    this.#history = history;
    this.#present = new PresentInteractions(collections);
  }

  /**
   * Runs reads of the channel's interactions as they were at a point of its history, or as they are: give
   * each of them the view.
   *
   * @returns what `read` does, or null if there was no such channel of the organization then
   */
  async at<T>(
    organizationId: EntityId,
    channelId: EntityId,
    point: HistoryPoint | undefined,
    read: (view: InteractionView) => Promise<T | null>,
  ): Promise<T | null> {
    if (point === undefined) return read(this.#present);
    if ((await this.#entities.document(CHANNEL, organizationId, channelId)) === null) return null;
    const channel = { noun: CHANNEL, organizationId, id: channelId };
    return this.#history.at(channel, point, (revision) =>
      read(new PastInteractions(this.#collections, this.#history, channel, revision)),
    );
  }

  /**
   * The interaction, or null if there is none at that place, it is another organization's, or it is
   * incomplete and those are not asked for.
   */
  async interaction(
    organizationId: EntityId,
    { channelId, sequence }: InteractionPlace,
    { reader, includeIncomplete }: Audience,
    view = this.#present,
  ): Promise<Buffer | null> {
    if (sequence >= view.end) return null;
    const keys = interactionKeys(organizationId, channelId);
    const read = () =>
      Promise.all([
        this.#documents(organizationId, channelId, [sequence], reader, view),
        includeIncomplete ? [false] : view.incomplete(keys, [sequence]),
      ]);
    let [[found], [incomplete]] = await read();
    if (!found && (await this.#entities.isBehind(CHANNEL, organizationId, channelId))) {
      [[found], [incomplete]] = await read();
    }
    return found && incomplete !== true ? found : null;
  }

  /** The bytes of an interaction that a command has answered with, with what was added to it before. */
  async annotate(
    organizationId: EntityId,
    { channelId, sequence }: InteractionPlace,
    document: Buffer,
    reader: Reader,
  ): Promise<Buffer> {
    const annotations = await this.#annotations.of(organizationId, channelId, [sequence], reader);
    return annotated(document, annotations.get(sequence));
  }

  /** All that hangs below a span, ordered by sequence. */
  async descendants(
    organizationId: EntityId,
    channelId: EntityId,
    spanId: string,
    { reader, includeIncomplete }: Audience,
    view = this.#present,
  ): Promise<Buffer[]> {
    const keys = interactionKeys(organizationId, channelId);
    const found = new Map<ChannelSequence, Buffer>();
    // A level of the tree at a time: as many round trips as it is deep, and no tree is deeper than 64.
    for (let parents = [spanId]; parents.length > 0 && found.size < MAX_NESTED;) {
      const members = (
        await this.#collections.withPrefixes(
          keys.children,
          parents.map((parent) => `${parent} `),
          MAX_NESTED - found.size,
        )
      ).flat();
      const there = members.map(sequenceOfChild).filter((sequence) => sequence < view.end);
      const sequences = there.slice(0, MAX_NESTED - found.size);
      const documents = await this.#documents(organizationId, channelId, sequences, reader, view);
      parents = [];
      for (const [index, document] of documents.entries()) {
        const sequence = sequences[index];
        if (document === null || sequence === undefined) continue;
        found.set(sequence, document);
        parents.push(spanIdOf(document));
      }
    }
    const sequences = [...found.keys()].sort((a, b) => a - b);
    const shown = includeIncomplete ? sequences : await complete(view, keys, sequences);
    return shown.flatMap((sequence) => found.get(sequence as ChannelSequence) ?? []);
  }

  /** An interaction's bytes with all that hangs below it as `nested_interactions`. */
  async nested(
    organizationId: EntityId,
    { channelId }: InteractionPlace,
    document: Buffer,
    shown: Audience & { readonly includeToolCallUpdates: boolean },
    view = this.#present,
  ): Promise<Buffer> {
    const below = await this.descendants(organizationId, channelId, spanIdOf(document), shown, view);
    if (shown.includeToolCallUpdates && view === this.#present) {
      const spans = new Set([document, ...below].map(spanIdOf));
      const updates = await this.#updates.ofChannel(organizationId, channelId);
      const own = updates.filter(({ parentSpanId }) => parentSpanId !== null && spans.has(parentSpanId));
      below.push(...own.map((update) => update.document));
    }
    // Spliced in before the closing brace: what is stored is sent as it is.
    const parts: Buffer[] = [document.subarray(0, -1), Buffer.from(',"nested_interactions":[')];
    for (const [index, one] of below.entries()) parts.push(...(index === 0 ? [one] : [Buffer.from(','), one]));
    return Buffer.concat([...parts, Buffer.from(']}')]);
  }

  /** A channel's interactions; null if the organization has no such channel. */
  async list(
    organizationId: EntityId,
    channelId: EntityId,
    filter: InteractionFilter,
    page: { readonly size: number; readonly offset: number; readonly after: string | null },
    reader: Audience['reader'],
    view = this.#present,
  ): Promise<InteractionPage | null> {
    const channel = await this.#entities.document(CHANNEL, organizationId, channelId);
    if (channel === null) return null;
    const keys = interactionKeys(organizationId, channelId);
    const set = keys.index(narrowestFacet(filter));
    const bounds = { after: filter.afterSequence, before: lowest(filter.beforeSequence, view.end) };
    const cursor = page.after === null ? {} : { [filter.order === 'asc' ? 'after' : 'before']: Number(page.after) };
    const [total, kept] = await Promise.all([
      this.#total(keys, set, bounds, filter, view),
      this.#walk(keys, set, { ...bounds, ...cursor }, filter, page, view),
    ]);
    const sequences = kept.slice(0, page.size);
    const documents = await this.#documents(organizationId, channelId, sequences, reader, view);
    const hasNext = kept.length > page.size;
    const isNewest = filter.order === 'asc' ? !hasNext : page.after === null && page.offset === 0;
    const updates = isNewest && view === this.#present ? await this.#updatesIn(organizationId, channelId, filter) : [];
    return {
      items: [...documents.filter((document) => document !== null), ...updates],
      total,
      hasNext,
      last: sequences.at(-1)?.toString() ?? null,
    };
  }

  /** Updates that fit the filter. They have no sequence, and come after all that has one. */
  async #updatesIn(organizationId: EntityId, channelId: EntityId, filter: InteractionFilter): Promise<Buffer[]> {
    const { includeToolCallUpdates, beforeSequence, contentRole, turnId } = filter;
    if (!includeToolCallUpdates || beforeSequence !== undefined) return [];
    if (contentRole !== undefined && contentRole !== 'tool_call_update') return [];
    const updates = await this.#updates.ofChannel(organizationId, channelId);
    return updates.filter((one) => turnId === undefined || one.turnId === turnId).map(({ document }) => document);
  }

  /**
   * Goes through the index until the page is full, leaving out what is not to be shown. Each step begins after
   * the last one's end, not at an offset: what arrives meanwhile moves nothing.
   */
  async #walk(
    keys: InteractionKeys,
    set: string,
    bounds: SequenceBounds,
    filter: InteractionFilter,
    page: { readonly size: number; readonly offset: number; readonly after: string | null },
    view: InteractionView,
  ): Promise<number[]> {
    const wanted = page.size + 1;
    const limit = Math.max(wanted, 100);
    const kept: number[] = [];
    const { order } = filter;
    // What one index lists is jumped to; in the other cases, what is to be skipped must be looked at.
    const jump = isOneIndex(filter) ? page.offset : 0;
    let toSkip = page.offset - jump;
    let range = { ...bounds };
    for (let offset = jump; kept.length < wanted; offset = 0) {
      const found = await this.#collections.numbers(set, { ...range, order, offset, limit });
      const last = found.at(-1);
      if (last === undefined) break;
      if (offset > 0) toSkip += await this.#hiddenBefore(keys, set, found[0] ?? last, bounds, filter, view);
      const shown = filter.includeIncomplete ? found : await complete(view, keys, found);
      const matching = await this.#inTurn(keys, shown, filter);
      kept.push(...matching.slice(toSkip));
      toSkip = Math.max(0, toSkip - matching.length);
      if (found.length < limit) break;
      range = { ...range, [order === 'asc' ? 'after' : 'before']: last };
    }
    return kept.slice(0, wanted);
  }

  /** How many that are not shown come before a sequence, in the order of the list. */
  async #hiddenBefore(
    keys: InteractionKeys,
    set: string,
    sequence: number,
    bounds: SequenceBounds,
    filter: InteractionFilter,
    view: InteractionView,
  ): Promise<number> {
    if (filter.includeIncomplete) return 0;
    const hidden = await this.#hidden(keys, set, bounds, view);
    return hidden.filter((one) => (filter.order === 'asc' ? one < sequence : one > sequence)).length;
  }

  /** The incomplete ones of an index: never many, for a channel may have few. */
  async #hidden(keys: InteractionKeys, set: string, bounds: SequenceBounds, view: InteractionView): Promise<number[]> {
    const incomplete = await view.incompleteIn(keys, bounds);
    const listed = await this.#collections.contained(set, incomplete);
    return incomplete.filter((_, index) => listed[index] === true);
  }

  async #total(
    keys: InteractionKeys,
    set: string,
    bounds: SequenceBounds,
    filter: InteractionFilter,
    view: InteractionView,
  ): Promise<number> {
    if (isOneIndex(filter)) {
      const count = await this.#collections.count(set, bounds);
      return filter.includeIncomplete ? count : count - (await this.#hidden(keys, set, bounds, view)).length;
    }
    let total = 0;
    for (let range: SequenceBounds = bounds; ;) {
      const found = await this.#collections.numbers(set, { ...range, order: 'asc', offset: 0, limit: MAX_NESTED });
      const shown = filter.includeIncomplete ? found : await complete(view, keys, found);
      total += (await this.#inTurn(keys, shown, filter)).length;
      if (found.length < MAX_NESTED) return total;
      range = { ...range, after: found.at(-1) };
    }
  }

  /** A turn is walked through its own index, so a role is what is left to check. */
  async #inTurn(keys: InteractionKeys, sequences: readonly number[], filter: InteractionFilter): Promise<number[]> {
    if (isOneIndex(filter)) return [...sequences];
    const ofRole = await this.#collections.contained(keys.index(`role=${filter.contentRole}`), sequences);
    return sequences.filter((_, index) => ofRole[index] === true);
  }

  /** Both reads travel together; where nothing was added, what is stored is what is sent. */
  async #documents(
    organizationId: EntityId,
    channelId: EntityId,
    sequences: readonly number[],
    reader: Reader | null,
    view: InteractionView,
  ): Promise<(Buffer | null)[]> {
    const keys = interactionKeys(organizationId, channelId);
    if (reader === null) return view.documents(keys, sequences);
    const [documents, annotations] = await Promise.all([
      view.documents(keys, sequences),
      this.#annotations.of(organizationId, channelId, sequences, reader),
    ]);
    if (annotations.size === 0) return documents;
    return documents.map((document, index) => document && annotated(document, annotations.get(sequences[index] ?? 0)));
  }
}

async function complete(view: InteractionView, keys: InteractionKeys, sequences: readonly number[]): Promise<number[]> {
  const incomplete = await view.incomplete(keys, sequences);
  return sequences.filter((_, index) => incomplete[index] !== true);
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

function spanIdOf(document: Buffer): string {
  const parsed: unknown = JSON.parse(document.toString());
  return typeof parsed === 'object' && parsed !== null && 'span_id' in parsed ? String(parsed.span_id) : '';
}
