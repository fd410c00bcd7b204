import { sequenceOf, streamRevision, type StreamEvent, type StreamRevision } from '#libs/kernel/event.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import {
  blockStart,
  type CollectionReader,
  type EntityRef,
  type HistoryReader,
} from '#libs/platform/readmodel/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import {
  changed,
  type Interaction,
  interactionCodec,
  type InteractionEvent,
  isSuperseding,
  posted,
  superseded,
} from '../interaction.events.ts';
import type { InteractionsState } from '../interaction.ts';
import { opened } from '../open-interaction.ts';
import { CHANNEL, channelKeys, type ChannelKeys } from '../../channel.keys.ts';
import { currentDocuments, type InteractionView, type SequenceBounds } from './present.ts';
import { interactionJson, isDeleted } from './resource.ts';

/** A channel, and the readers of its history. */
interface PastSources {
  readonly collections: CollectionReader;
  readonly history: HistoryReader;
  readonly channel: EntityRef;
}

/**
 * Interactions as they were after the event of a revision. Those that have not changed since are read as stored; the
 * others are folded from their own events.
 */
export class PastInteractions implements InteractionView {
  readonly end: number;
  readonly #sources: PastSources;
  readonly #revision: StreamRevision;
  #open: Promise<ReadonlySet<number>> | null = null;

  constructor(sources: PastSources, revision: StreamRevision) {
    this.#sources = sources;
    this.#revision = revision;
    this.end = sequenceOf(revision) + 1;
  }

  async documents(keys: ChannelKeys, sequences: readonly number[]): Promise<(Buffer | null)[]> {
    const stored = await currentDocuments(this.#sources.collections, keys, sequences);
    // Read after the documents, so that it finds every change that a document includes.
    const newest = await Promise.all(
      sequences.map((sequence) => changesOf(this.#sources, keys, sequence, { limit: 1 })),
    );
    return Promise.all(
      sequences.map((sequence, index) => {
        const document = stored[index] ?? null;
        if (document === null || sequence >= this.end) return null;
        // Its content is gone from reads of the past, too.
        if (isDeleted(document)) return document;
        const [last = -1] = newest[index] ?? [];
        return last <= this.#revision ? document : this.#folded(keys, sequence);
      }),
    );
  }

  async incompleteIn(_keys: ChannelKeys, { after, before }: SequenceBounds): Promise<number[]> {
    const open = await this.#openSequences();
    return [...open].filter((one) => one > (after ?? -Infinity) && one < (before ?? Infinity));
  }

  async #folded(keys: ChannelKeys, sequence: number): Promise<Buffer | null> {
    const interaction = await interactionUntil(this.#sources, keys, sequence, this.#revision);
    if (interaction === null) return null;
    const { organizationId, id: channelId } = this.#sources.channel;
    return Buffer.from(interactionJson(interaction, { organizationId, channelId }));
  }

  #openSequences(): Promise<ReadonlySet<number>> {
    this.#open ??= this.#foldOpen();
    return this.#open;
  }

  async #foldOpen(): Promise<ReadonlySet<number>> {
    const { history, channel } = this.#sources;
    const open = new Set(await openSequencesBefore(this.#sources, this.#revision));
    for (const stored of await history.blockUpTo(channel, this.#revision)) {
      const event = decoded(stored);
      if (event === null) continue;
      if (event.type === 'InteractionPosted.v1') {
        if (!event.data.complete) open.add(sequenceOf(event.revision));
      } else if (event.type !== 'InteractionContentAppended.v1') {
        open.delete(event.data.sequence);
      }
    }
    return open;
  }
}

/** The sequences of the incomplete interactions, ascending. The history of a channel stores them as `open`. */
export function openSequences({ open }: InteractionsState): number[] {
  // JavaScript sorts integer keys in ascending order.
  return Object.keys(open).map(Number);
}

/** The interactions that were incomplete before the block of events that contains `revision`. */
export async function openBefore(sources: PastSources, revision: StreamRevision): Promise<InteractionsState> {
  const { organizationId, id } = sources.channel;
  const keys = channelKeys(organizationId, id);
  const sequences = await openSequencesBefore(sources, revision);
  const before = streamRevision(blockStart(revision) - 1);
  const interactions = await Promise.all(
    sequences.map((sequence) => interactionUntil(sources, keys, sequence, before)),
  );
  const found = interactions.filter((interaction) => interaction !== null);
  return { open: Object.fromEntries(found.map((interaction) => [interaction.sequence, opened(interaction)])) };
}

async function openSequencesBefore(
  { history, channel }: PastSources,
  revision: StreamRevision,
): Promise<readonly number[]> {
  return ((await history.keptBefore(channel, 'open', revision)) as number[] | null) ?? [];
}

/** Revisions of the events that changed an interaction, newest first. */
function changesOf(
  { collections }: PastSources,
  keys: ChannelKeys,
  sequence: number,
  { limit }: { readonly limit: number },
): Promise<number[]> {
  const only = { after: sequence - 1, before: sequence + 1 };
  return collections.numbers(keys.changes, { ...only, order: 'desc', offset: 0, limit });
}

/** An interaction after the event of a revision, folded from its own events. */
async function interactionUntil(
  sources: PastSources,
  keys: ChannelKeys,
  sequence: number,
  until: StreamRevision,
): Promise<Interaction | null> {
  const { history, channel } = sources;
  const changes = await changesOf(sources, keys, sequence, { limit: -1 });
  const wanted = changes.filter((revision) => revision <= until).toReversed();
  let interaction: Interaction | null = null;
  for (const [from, to] of ranges([sequence - 1, ...wanted])) {
    for (const stored of await history.events(channel, streamRevision(from), streamRevision(to))) {
      const event = decoded(stored);
      if (event !== null) interaction = interactionAfter(interaction, event, sequence);
    }
  }
  return interaction;
}

/** The interaction at `sequence` after an event of its channel. */
function interactionAfter(
  interaction: Interaction | null,
  event: StreamEvent<InteractionEvent>,
  sequence: number,
): Interaction | null {
  if (event.type === 'InteractionPosted.v1') {
    return Number(sequenceOf(event.revision)) === sequence ? posted(event) : interaction;
  }
  if (isSuperseding(event)) {
    return event.data.sequence === sequence && interaction !== null
      ? { ...interaction, ...superseded(event) }
      : interaction;
  }
  // As in the fold of the whole stream: a complete interaction does not change.
  const isOwn = event.data.sequence === sequence && interaction !== null && !interaction.complete;
  return isOwn ? changed(interaction, event) : interaction;
}

/**
 * Whether the data of an event were erased: those of an interaction that was deleted later. Brings the channel's read model
 * up to date if it lacks events.
 */
export async function erasedEvents(
  { collections, reader }: Pick<Core, 'collections' | 'reader'>,
  { organizationId, id }: EntityRef,
): Promise<(event: StoredEvent) => boolean> {
  await reader.isBehind(CHANNEL, organizationId, id);
  const { deleted } = channelKeys(organizationId, id);
  const sequences = new Set(await collections.numbers(deleted, { order: 'asc', offset: 0, limit: -1 }));
  return ({ type, data, revision }) => {
    if (sequences.size === 0 || type === 'InteractionDeleted.v1' || !interactionCodec.types.has(type)) return false;
    const isPost = type === 'InteractionPosted.v1';
    return sequences.has(isPost ? sequenceOf(revision) : Number((data as { readonly sequence: number }).sequence));
  };
}

function decoded(stored: StoredEvent): StreamEvent<InteractionEvent> | null {
  return interactionCodec.types.has(stored.type) ? interactionCodec.decode(stored) : null;
}

/** Revisions at most this far apart are read as one range, with the events between them. */
const MAX_GAP = 16;

/** Groups ascending revisions into ranges. */
function ranges(revisions: readonly number[]): [from: number, to: number][] {
  const joined: [number, number][] = [];
  for (const revision of revisions) {
    const last = joined.at(-1);
    if (last !== undefined && revision - last[1] <= MAX_GAP) last[1] = revision;
    else joined.push([revision, revision]);
  }
  return joined;
}
