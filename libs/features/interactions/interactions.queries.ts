import { CHANNEL } from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CollectionReader, EntityReader, HistoryPoint, HistoryReader } from '#libs/platform/readmodel/index.ts';

import type { Annotations, Reader } from './interaction.annotations.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { InteractionDocuments } from './interactions.documents.ts';
import type { Reading } from './interactions.documents.ts';
import { PastInteractions } from './interactions.history.ts';
import { interactionKeys } from './interactions.keys.ts';
import { FilteredInteractions } from './interactions.list.ts';
import type { InteractionFilter, InteractionPlaceInList } from './interactions.list.ts';
import { isWithin, sequencesCreated } from './interactions.times.ts';
import { descendants, updatesBelow, withNested } from './interactions.tree.ts';
import type { InteractionTreeIndex } from './interactions.tree-index.ts';
import { PresentInteractions } from './interactions.view.ts';
import type { InteractionView } from './interactions.view.ts';
import { isComplete as isCompleted, spanIdOf } from './stored-interaction.ts';
import type { ToolCallUpdates } from './tool-call-updates.ts';

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

/**
 * Reads of interactions: ready bytes from the read model, with what the reader is to see added. All throw the
 * faults of `EntityReader`.
 */
export class InteractionQueries {
  readonly #entities: EntityReader;
  readonly #collections: CollectionReader;
  readonly #documents: InteractionDocuments;
  readonly #tree: InteractionTreeIndex;
  readonly #updates: ToolCallUpdates;
  readonly #history: HistoryReader;
  readonly #present: InteractionView;

  constructor(
    entities: EntityReader,
    collections: CollectionReader,
    history: HistoryReader,
    {
      annotations,
      tree,
      updates,
    }: { readonly annotations: Annotations; readonly tree: InteractionTreeIndex; readonly updates: ToolCallUpdates },
  ) {
    this.#entities = entities;
    this.#collections = collections;
    this.#documents = new InteractionDocuments(annotations);
    this.#tree = tree;
    this.#updates = updates;
    this.#history = history;
    this.#present = new PresentInteractions(collections);
  }

  /**
   * Runs reads of the channel's interactions as they were at a point of its history, or as they are: give
   * each of them the view.
   *
   * @returns what `read` does, or null if there was no such channel of the organization then
   */
  at<T>(
    organizationId: EntityId,
    channelId: EntityId,
    point: HistoryPoint | undefined,
    read: (view: InteractionView) => Promise<T | null>,
  ): Promise<T | null> {
    return point === undefined ? read(this.#present) : this.#then(organizationId, channelId, point, read);
  }

  async #then<T>(
    organizationId: EntityId,
    channelId: EntityId,
    point: HistoryPoint,
    read: (view: InteractionView) => Promise<T | null>,
  ): Promise<T | null> {
    if ((await this.#entities.document(CHANNEL, organizationId, channelId)) === null) return null;
    const channel = { category: CHANNEL, organizationId, id: channelId };
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
    const read = () => this.#documents.of({ organizationId, channelId, view, reader }, [sequence]);
    const current = this.#entities.isCurrent(CHANNEL, organizationId, channelId);
    const [isCurrent, [stored]] = await Promise.all([current, read()]);
    let found = stored;
    if (!found || !isCurrent) {
      if (await this.#entities.isBehind(CHANNEL, organizationId, channelId)) [found] = await read();
    }
    return found && (includeIncomplete || isCompleted(found)) ? found : null;
  }

  /** The bytes of an interaction that a command has answered with, with what was added to it before. */
  annotate(organizationId: EntityId, place: InteractionPlace, document: Buffer, reader: Reader): Promise<Buffer> {
    return this.#documents.annotate(organizationId, place, document, reader);
  }

  /** All that hangs below a span, ordered by sequence. */
  async descendants(
    organizationId: EntityId,
    channelId: EntityId,
    spanId: string,
    { reader, includeIncomplete }: Audience,
    view = this.#present,
  ): Promise<Buffer[]> {
    const sources = { tree: this.#tree, documents: this.#documents };
    const reading = { organizationId, channelId, view, reader };
    const channel = { category: CHANNEL, organizationId, id: channelId };
    const read = () => descendants(sources, reading, spanId, { includeIncomplete });
    return (await this.#entities.whole(channel, read)) ?? [];
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
    if (!shown.includeToolCallUpdates || view !== this.#present) return withNested(document, below);
    const updates = await this.#updates.ofChannel(organizationId, channelId);
    return withNested(document, [...below, ...updatesBelow(document, below, updates)]);
  }

  /** A channel's interactions; null if the organization has no such channel. */
  async list(
    organizationId: EntityId,
    channelId: EntityId,
    filter: InteractionFilter,
    page: InteractionPlaceInList,
    reader: Audience['reader'],
    view = this.#present,
  ): Promise<InteractionPage | null> {
    const channel = { category: CHANNEL, organizationId, id: channelId };
    return this.#entities.whole(channel, () => this.#page({ organizationId, channelId, view, reader }, filter, page));
  }

  async #page(reading: Reading, filter: InteractionFilter, page: InteractionPlaceInList): Promise<InteractionPage> {
    const { organizationId, channelId, view } = reading;
    const keys = interactionKeys(organizationId, channelId);
    const sources = { collections: this.#collections, history: this.#history };
    const created = await sequencesCreated(sources, { category: CHANNEL, organizationId, id: channelId }, filter);
    const fitting = new FilteredInteractions(this.#collections, keys, filter, view, created);
    const [total, found] = await Promise.all([fitting.count(), fitting.page(page)]);
    const sequences = found.slice(0, page.size);
    const documents = await this.#documents.of(reading, sequences);
    const hasNext = found.length > page.size;
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
    return updates
      .filter((one) => (turnId === undefined || one.turnId === turnId) && isWithin(one.createdMs, filter))
      .map(({ document }) => document);
  }
}
