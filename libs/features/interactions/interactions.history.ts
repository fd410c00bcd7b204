import { sequenceOf } from '#libs/kernel/event.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { CollectionReader, HistoricEntity, HistoryReader } from '#libs/platform/readmodel/index.ts';

import type { InteractionKeys } from './interactions.keys.ts';
import { changesOf, decoded, interactionUntil, openSequencesBefore } from './interactions.past.ts';
import type { PastSources } from './interactions.past.ts';
import { interactionResource } from './interactions.projection.ts';
import type { InteractionView, SequenceBounds } from './interactions.view.ts';

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
  readonly #sources: PastSources;
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
    this.#sources = { collections, history, channel };
    this.#revision = revision;
    this.end = sequenceOf(revision) + 1;
  }

  async documents(keys: InteractionKeys, sequences: readonly number[]): Promise<(Buffer | null)[]> {
    const there = sequences.map((sequence) => sequence < this.end);
    const stored = await this.#collections.fields(keys.documents, sequences);
    // After the documents: a change that none of these shows is in none of those.
    const newest = await Promise.all(
      sequences.map((sequence) => changesOf(this.#sources, keys, sequence, { limit: 1 })),
    );
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

  async #folded(keys: InteractionKeys, sequence: number): Promise<Buffer | null> {
    const interaction = await interactionUntil(this.#sources, keys, sequence, this.#revision);
    if (interaction === null) return null;
    const { organizationId, id: channelId } = this.#channel;
    return Buffer.from(JSON.stringify(interactionResource(interaction, { organizationId, channelId })));
  }

  #openThen(): Promise<ReadonlySet<number>> {
    this.#open ??= this.#foldOpen();
    return this.#open;
  }

  async #foldOpen(): Promise<ReadonlySet<number>> {
    const open = new Set(await openSequencesBefore(this.#history, this.#channel, this.#revision));
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
