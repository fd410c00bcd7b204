import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { HistoryPoint, KeptRead, WholeRead } from '#libs/platform/readmodel/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import { NO_ANNOTATIONS, type ReactionAnnotations } from '../../reaction/reaction.read.ts';

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
import { type FoundPage, type IndexedPage, type InteractionPage, packedPage, PageIndex } from './page.ts';
import { PastInteractions } from './past.ts';
import { documentsAtOnce, type InteractionView, PresentInteractions, type Reader } from './present.ts';
import { annotated, isComplete, spanIdOf, withNested } from './resource.ts';
import { InteractionTreeIndex, updatesBelow } from './tree.ts';

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

/** Reads of interactions: stored bytes with annotations for the reader. All throw the faults of `EntityReader`. */
export class InteractionQueries {
  readonly #core: Pick<Core, 'collections' | 'history' | 'reader'>;
  readonly #annotations: ReactionAnnotations;
  readonly #tree: InteractionTreeIndex;
  readonly #pages: PageIndex;
  readonly #updates: ToolCallUpdates;
  readonly #present: InteractionView;

  constructor(core: Core, annotations: ReactionAnnotations, updates: ToolCallUpdates) {
    this.#core = core;
    this.#annotations = annotations;
    this.#tree = new InteractionTreeIndex(core);
    this.#pages = new PageIndex(core);
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
    return annotatedAll(documents, sequences, added);
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
    const indexed = this.#pages.answers(filter) ? await this.#indexed(reading, filter, page, keep) : null;
    for (let attempt = 1; ; attempt += 1) {
      const found = attempt === 1 && indexed !== null ? indexed : await this.#core.reader.whole(channel, read, keep);
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
    const indexed = { total, oldestIncomplete, sequences, hasNext: found.length > page.size };
    return this.#pageOf(reading, filter, page, indexed, documents);
  }

  /**
   * A page that one index answers, in two round trips: what it shows, then the documents and marks. Null if the channel is
   * missing, not current or changes meanwhile, or if its documents are so large that they are read in pieces.
   */
  #indexed(
    reading: Reading,
    filter: InteractionFilter,
    page: InteractionPageRequest,
    keep: KeptRead<FoundPage> | undefined,
  ): Promise<WholeRead<FoundPage> | null> {
    const { organizationId, channelId, reader } = reading;
    const channel = { category: CHANNEL, organizationId, id: channelId };
    const keys = channelKeys(organizationId, channelId);
    const { collections } = this.#core;
    const find = async (): Promise<IndexedPage | null> => {
      const found = await this.#pages.find(channel, filter, page).catch((error: unknown) => {
        // A full Redis serves reads, but does not load the function.
        if (error instanceof Fault) return null;
        throw error;
      });
      return found !== null && collections.isDivided(keys.documents, found.sequences.length) ? null : found;
    };
    return this.#core.reader.together(
      channel,
      find,
      async (indexed) => {
        const { sequences, incomplete, hasMarks } = indexed;
        const [documents, added] = await Promise.all([
          documentsAtOnce(collections, keys, sequences, incomplete),
          hasMarks && reader !== null
            ? this.#annotations.ofMarked(organizationId, channelId, sequences, reader)
            : NO_ANNOTATIONS,
        ]);
        return this.#pageOf(reading, filter, page, indexed, annotatedAll(documents, sequences, added));
      },
      keep,
    );
  }

  async #pageOf(
    { organizationId, channelId, view }: Reading,
    filter: InteractionFilter,
    page: InteractionPageRequest,
    { total, oldestIncomplete, sequences, hasNext }: Omit<IndexedPage, 'revision' | 'incomplete' | 'hasMarks'>,
    documents: readonly (Buffer | null)[],
  ): Promise<FoundPage> {
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

function annotatedAll(
  documents: (Buffer | null)[],
  sequences: readonly number[],
  added: Awaited<ReturnType<ReactionAnnotations['of']>>,
): (Buffer | null)[] {
  if (added.size === 0) return documents;
  return documents.map((document, index) => document && annotated(document, added.get(sequences[index] ?? 0)));
}

/** Names the readers that see the same annotations. */
function nameOf(reader: Reader | null): string {
  return reader === null ? 'plain' : `as ${reader.userId}${reader.namesReactors === true ? ' with reactors' : ''}`;
}

function packed(document: Buffer): [Buffer, number] {
  return [Buffer.from(document), document.length];
}
