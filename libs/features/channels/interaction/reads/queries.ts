import { type ChannelSequence, sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { SentPage } from '#libs/platform/http/index.ts';
import type { HistoryPoint } from '#libs/platform/readmodel/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import type { ReactionAnnotations } from '../../reaction/reaction.read.ts';

import type { InteractionRef } from '../interaction.id.ts';
import type { ToolCallUpdates } from '../tool-call-updates.ts';
import { CHANNEL, channelKeys } from '../../channel.keys.ts';
import {
  FilteredInteractions,
  type InteractionFilter,
  type InteractionPageRequest,
  isWithin,
  sequencesCreated,
} from './list.ts';
import { PastInteractions } from './past.ts';
import { type InteractionView, PresentInteractions, type Reader } from './present.ts';
import { annotated, isComplete, spanIdOf, withNested } from './resource.ts';
import { InteractionTreeIndex, updatesBelow } from './tree.ts';

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

type FoundPage = Omit<InteractionPage, 'sequence'>;

/** Reads of a page that changes meanwhile, before it is read as of a sequence. */
const ATTEMPTS = 2;

/** The reader of interactions, and whether incomplete ones are included. */
interface Audience {
  /** Null: without annotations. */
  readonly reader: Reader | null;
  readonly includeIncomplete: boolean;
}

/** The channel, point in history and reader of a read. */
interface Reading extends Pick<Audience, 'reader'> {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
  readonly view: InteractionView;
}

/** Memory of an item of a page beside its bytes. */
const ITEM_BYTES = 128;

/** Reads of interactions: stored bytes with annotations for the reader. All throw the faults of `EntityReader`. */
export class InteractionQueries {
  readonly #core: Pick<Core, 'collections' | 'history' | 'reader'>;
  readonly #annotations: ReactionAnnotations;
  readonly #tree: InteractionTreeIndex;
  readonly #updates: ToolCallUpdates;
  readonly #present: InteractionView;

  constructor(core: Core, annotations: ReactionAnnotations, updates: ToolCallUpdates) {
    this.#core = core;
    this.#annotations = annotations;
    this.#tree = new InteractionTreeIndex(core);
    this.#updates = updates;
    this.#present = new PresentInteractions(core.collections);
  }

  /**
   * Runs reads of the channel's interactions at a point in its history, or in the present; `read` passes the view to
   * each of them.
   *
   * @returns the result of `read`, or null if the organization had no such channel then
   */
  at<T>(
    organizationId: EntityId,
    channelId: EntityId,
    point: HistoryPoint | undefined,
    read: (view: InteractionView) => Promise<T | null>,
  ): Promise<T | null> {
    return point === undefined ? read(this.#present) : this.#past(organizationId, channelId, point, read);
  }

  async #past<T>(
    organizationId: EntityId,
    channelId: EntityId,
    point: HistoryPoint,
    read: (view: InteractionView) => Promise<T | null>,
  ): Promise<T | null> {
    const { reader, collections, history } = this.#core;
    if ((await reader.document(CHANNEL, organizationId, channelId)) === null) return null;
    const channel = { category: CHANNEL, organizationId, id: channelId };
    return history.at(channel, point, (revision) =>
      read(new PastInteractions({ collections, history, channel }, revision)),
    );
  }

  /**
   * The interaction, or null if it does not exist, belongs to another organization, or is incomplete and these are not
   * included.
   */
  async interaction(
    organizationId: EntityId,
    { channelId, sequence }: InteractionRef,
    { reader, includeIncomplete }: Audience,
    view = this.#present,
  ): Promise<Buffer | null> {
    if (sequence >= view.end) return null;
    const channel = { category: CHANNEL, organizationId, id: channelId };
    const one = [sequence];
    const read = async () => (await this.#read({ organizationId, channelId, view, reader }, one))[0] ?? null;
    const keep = { name: `one ${sequence} ${nameOf(reader)}`, pack: packed };
    const found = await this.#core.reader.part(channel, read, view === this.#present ? keep : undefined);
    return found && (includeIncomplete || isComplete(found)) ? found : null;
  }

  /** The interaction that a command returned, with its annotations. */
  async annotate(
    organizationId: EntityId,
    { channelId, sequence }: InteractionRef,
    document: Buffer,
    reader: Reader,
  ): Promise<Buffer> {
    const found = await this.#annotations.of(organizationId, channelId, [sequence], reader, Infinity);
    return annotated(document, found.get(sequence));
  }

  /** An interaction with its descendants as `nested_interactions`; null as for {@link interaction}. */
  async nested(
    organizationId: EntityId,
    { channelId, sequence }: InteractionRef,
    { reader, includeIncomplete, includeToolCallUpdates }: Audience & { readonly includeToolCallUpdates: boolean },
    view = this.#present,
  ): Promise<Buffer | null> {
    if (sequence >= view.end) return null;
    const isPresent = view === this.#present;
    const reading = { organizationId, channelId, view, reader };
    const read = async (): Promise<Buffer | null> => {
      const [document = null] = await this.#read(reading, [sequence]);
      if (document === null || !(includeIncomplete || isComplete(document))) return null;
      const below = await this.#below(reading, spanIdOf(document), includeIncomplete);
      if (!includeToolCallUpdates || !isPresent) return withNested(document, below);
      const running = await this.#updates.ofChannel(organizationId, channelId);
      return withNested(document, [...below, ...updatesBelow(document, below, running)]);
    };
    const name = `tree ${sequence} ${includeIncomplete} ${nameOf(reader)}`;
    // Updates of tool calls are not part of the read models.
    const keep = isPresent && !includeToolCallUpdates ? { name, pack: packed } : undefined;
    const channel = { category: CHANNEL, organizationId, id: channelId };
    return (await this.#core.reader.whole(channel, read, keep))?.result ?? null;
  }

  async #below(reading: Reading, spanId: string, includeIncomplete: boolean): Promise<Buffer[]> {
    const { organizationId, channelId, view } = reading;
    const sequences = await this.#tree.below(organizationId, channelId, spanId, view.end);
    const documents = await this.#read(reading, sequences);
    return documents.filter((one) => one !== null).filter((one) => includeIncomplete || isComplete(one));
  }

  /**
   * Interactions as one reader sees them, in the order of `sequences`; null for a missing one. Reads documents and
   * annotations in one batch.
   */
  async #read(
    { organizationId, channelId, view, reader }: Reading,
    sequences: readonly number[],
  ): Promise<(Buffer | null)[]> {
    const keys = channelKeys(organizationId, channelId);
    if (reader === null) return view.documents(keys, sequences);
    const [documents, added] = await Promise.all([
      view.documents(keys, sequences),
      this.#annotations.of(organizationId, channelId, sequences, reader, view.end),
    ]);
    if (added.size === 0) return documents;
    return documents.map((document, index) => document && annotated(document, added.get(sequences[index] ?? 0)));
  }

  /** A channel's interactions; null if the organization has no such channel. */
  async list(
    organizationId: EntityId,
    channelId: EntityId,
    filter: InteractionFilter,
    page: InteractionPageRequest,
    reader: Audience['reader'],
    view = this.#present,
  ): Promise<InteractionPage | null> {
    const channel = { category: CHANNEL, organizationId, id: channelId };
    const reading = { organizationId, channelId, view, reader };
    const { size, offset, after } = page;
    const name = `list ${nameOf(reader)} ${JSON.stringify([filter, size, offset, after])}`;
    const keep = view === this.#present && !filter.includeToolCallUpdates ? { name, pack: packedPage } : undefined;
    const read = () => this.#page(reading, filter, page);
    if (view !== this.#present) {
      const found = (await this.#core.reader.whole(channel, read))?.result;
      return found ? { ...found, sequence: sequenceOf(streamRevision(view.end - 2)) } : null;
    }
    for (let attempt = 1; ; attempt += 1) {
      const found = await this.#core.reader.whole(channel, read, keep);
      if (found === null || found.result === null) return null;
      const sequence = sequenceOf(found.revision);
      if (found.hasHeld) return { ...found.result, sequence };
      if (attempt < ATTEMPTS) continue;
      // The channel changes all the time, so it is read as it was at a sequence.
      return this.#past(organizationId, channelId, { sequence }, (past) =>
        this.list(organizationId, channelId, filter, page, reader, past),
      );
    }
  }

  async #page(reading: Reading, filter: InteractionFilter, page: InteractionPageRequest): Promise<FoundPage> {
    const { organizationId, channelId, view } = reading;
    const { collections } = this.#core;
    const keys = channelKeys(organizationId, channelId);
    const channel = { category: CHANNEL, organizationId, id: channelId };
    const created = await sequencesCreated(this.#core, channel, filter);
    const matching = new FilteredInteractions(collections, keys, filter, view, created);
    const oldestIncomplete = await matching.endBeforeIncomplete();
    const [total, found] = await Promise.all([matching.count(), matching.page(page)]);
    const sequences = found.slice(0, page.size);
    const documents = await this.#read(reading, sequences);
    const hasNext = found.length > page.size;
    const isNewest = filter.order === 'asc' ? !hasNext : page.after === null && page.offset === 0;
    const updates = isNewest && view === this.#present ? await this.#updatesIn(organizationId, channelId, filter) : [];
    return {
      items: [...documents.filter((document) => document !== null), ...updates],
      total,
      hasNext,
      last: sequences.at(-1)?.toString() ?? null,
      oldestIncomplete,
    };
  }

  /** The tool-call updates that match the filter. They have no sequence, and follow the interactions. */
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

/** Names the readers that see the same annotations. */
function nameOf(reader: Reader | null): string {
  return reader === null ? 'plain' : `as ${reader.userId}${reader.namesReactors === true ? ' with reactors' : ''}`;
}

function packed(document: Buffer): [Buffer, number] {
  return [Buffer.from(document), document.length];
}

/** With all items in one block. */
function packedPage(page: FoundPage): [FoundPage, number] {
  const bytes = Buffer.concat(page.items);
  let end = 0;
  const items = page.items.map(({ length }) => bytes.subarray(end, (end += length)));
  // Counted twice: for the items, and for the body that is sent.
  return [{ ...page, items, sent: { meta: '', body: null } }, 2 * bytes.length + items.length * ITEM_BYTES];
}
