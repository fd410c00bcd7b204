import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { ChannelSequence, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { CollectionReader, HistoricEntity, HistoryReader } from '#libs/platform/readmodel/index.ts';

import { changed, posted } from './interaction.decider.ts';
import type { Interaction, InteractionsState } from './interaction.decider.ts';
import { interactionCodec } from './interaction.events.ts';
import type { InteractionEvent } from './interaction.events.ts';
import type { InteractionKeys } from './interactions.keys.ts';
import { interactionResource } from './interactions.projection.ts';
import type { InteractionView, SequenceBounds } from './interactions.view.ts';

/** What is kept of the past: which interactions were incomplete, in ascending order. */
export function openSequences({ open }: InteractionsState): number[] {
  // Names that are integers come in ascending order.
  return Object.keys(open).map(Number);
}

/** Events of one interaction that are no further apart are read together, with those between them. */
const MAX_APART = 16;

/**
 * Interactions as they were after the event of a revision. What has not changed since is answered as it is
 * stored; what has is folded from its own events up to there.
 */
export class PastInteractions implements InteractionView {
  readonly end: number;
  readonly #collections: CollectionReader;
  readonly #history: HistoryReader;
  readonly #channel: HistoricEntity;
  readonly #revision: StreamRevision;
  #open: Promise<ReadonlySet<number>> | null = null;

  constructor(
    collections: CollectionReader,
    history: HistoryReader,
    channel: HistoricEntity,
    revision: StreamRevision,
  ) {
    this.#collections = collections;
    this.#history = history;
    this.#channel = channel;
    this.#revision = revision;
    this.end = sequenceOf(revision) + 1;
  }

  async documents(keys: InteractionKeys, sequences: readonly number[]): Promise<(Buffer | null)[]> {
    const there = sequences.map((sequence) => sequence < this.end);
    const stored = await this.#collections.fields(keys.documents, sequences);
    // After the documents: a change that none of these shows is in none of those.
    const newest = await Promise.all(sequences.map((sequence) => this.#changes(keys, sequence, { limit: 1 })));
    return Promise.all(
      sequences.map((sequence, index) => {
        const document = stored[index] ?? null;
        if (document === null || there[index] !== true) return null;
        const [last = -1] = newest[index] ?? [];
        return last <= this.#revision ? document : this.#folded(keys, sequence);
      }),
    );
  }

  async incomplete(_keys: InteractionKeys, sequences: readonly number[]): Promise<boolean[]> {
    const open = await this.#openThen();
    return sequences.map((sequence) => open.has(sequence));
  }

  async incompleteIn(_keys: InteractionKeys, { after, before }: SequenceBounds): Promise<number[]> {
    const open = await this.#openThen();
    return [...open].filter((one) => one > (after ?? -Infinity) && one < (before ?? Infinity));
  }

  /** Revisions of the events that changed an interaction, the newest first. */
  #changes(keys: InteractionKeys, sequence: number, { limit }: { readonly limit: number }): Promise<number[]> {
    const only = { after: sequence - 1, before: sequence + 1 };
    return this.#collections.numbers(keys.changes, { ...only, order: 'desc', offset: 0, limit });
  }

  async #folded(keys: InteractionKeys, sequence: number): Promise<Buffer | null> {
    const changes = await this.#changes(keys, sequence, { limit: -1 });
    const wanted = changes.filter((revision) => revision <= this.#revision).toReversed();
    let interaction: Interaction | null = null;
    for (const [from, to] of ranges([sequence - 1, ...wanted])) {
      for (const stored of await this.#history.events(this.#channel, streamRevision(from), streamRevision(to))) {
        const event = decoded(stored);
        if (event !== null) interaction = interactionAfter(interaction, event, sequence);
      }
    }
    if (interaction === null) return null;
    const { organizationId, id: channelId } = this.#channel;
    return Buffer.from(JSON.stringify(interactionResource(interaction, { organizationId, channelId })));
  }

  #openThen(): Promise<ReadonlySet<number>> {
    this.#open ??= this.#foldOpen();
    return this.#open;
  }

  async #foldOpen(): Promise<ReadonlySet<number>> {
    // Kept by `openSequences` (see services/features.ts).
    const kept = (await this.#history.keptBefore(this.#channel, 'open', this.#revision)) as number[] | null;
    const open = new Set(kept);
    for (const stored of await this.#history.blockUpTo(this.#channel, this.#revision)) {
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

/** The interaction at `sequence` after an event of its channel. */
function interactionAfter(
  interaction: Interaction | null,
  event: StreamEvent<InteractionEvent>,
  sequence: number,
): Interaction | null {
  if (event.type === 'InteractionPosted.v1') {
    return sequenceOf(event.revision) === (sequence as ChannelSequence) ? posted(event) : interaction;
  }
  // As in the fold of the whole stream, what is complete does not change.
  const isOwn = event.data.sequence === sequence && interaction !== null && !interaction.complete;
  return isOwn ? changed(interaction, event) : interaction;
}

function decoded(stored: StoredEvent): StreamEvent<InteractionEvent> | null {
  return interactionCodec.types.has(stored.type) ? interactionCodec.decode(stored) : null;
}

/** Ascending numbers as ranges, joined where they lie close together: fewer reads, few events too many. */
function ranges(numbers: readonly number[]): [from: number, to: number][] {
  const joined: [number, number][] = [];
  for (const number of numbers) {
    const last = joined.at(-1);
    if (last !== undefined && number - last[1] <= MAX_APART) last[1] = number;
    else joined.push([number, number]);
  }
  return joined;
}
