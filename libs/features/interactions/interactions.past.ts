import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { ChannelSequence, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { blockStart } from '#libs/platform/readmodel/index.ts';
import type { CollectionReader, HistoricEntity, HistoryReader } from '#libs/platform/readmodel/index.ts';

import { changed, opened, posted } from './interaction.decider.ts';
import type { Interaction, InteractionsState } from './interaction.decider.ts';
import { interactionCodec } from './interaction.events.ts';
import type { InteractionEvent } from './interaction.events.ts';
import { interactionKeys } from './interactions.keys.ts';
import type { InteractionKeys } from './interactions.keys.ts';

/** What is kept of the past: which interactions were incomplete, in ascending order. */
export function openSequences({ open }: InteractionsState): number[] {
  // Names that are integers come in ascending order.
  return Object.keys(open).map(Number);
}

/** Events of one interaction that are no further apart are read together, with those between them. */
const MAX_APART = 16;

/** Where the past of a channel's interactions is read. */
export interface PastSources {
  readonly collections: CollectionReader;
  readonly history: HistoryReader;
  readonly channel: HistoricEntity;
}

/** Those that were incomplete before the block of events that `revision` is in, in ascending order. */
export async function openSequencesBefore(
  history: HistoryReader,
  channel: HistoricEntity,
  revision: StreamRevision,
): Promise<readonly number[]> {
  // Kept by `openSequences` (see services/features.ts).
  return ((await history.keptBefore(channel, 'open', revision)) as number[] | null) ?? [];
}

/** The same with all that was in them: what a fold of the block starts from. Costs their own events. */
export async function openBefore(sources: PastSources, revision: StreamRevision): Promise<InteractionsState> {
  const { organizationId, id } = sources.channel;
  const keys = interactionKeys(organizationId, id);
  const sequences = await openSequencesBefore(sources.history, sources.channel, revision);
  const before = streamRevision(blockStart(revision) - 1);
  const interactions = await Promise.all(
    sequences.map((sequence) => interactionUntil(sources, keys, sequence, before)),
  );
  const found = interactions.filter((interaction) => interaction !== null);
  return { open: Object.fromEntries(found.map((interaction) => [interaction.sequence, opened(interaction)])) };
}

/** Revisions of the events that changed an interaction, the newest first. */
export function changesOf(
  { collections }: Pick<PastSources, 'collections'>,
  keys: InteractionKeys,
  sequence: number,
  { limit }: { readonly limit: number },
): Promise<number[]> {
  const only = { after: sequence - 1, before: sequence + 1 };
  return collections.numbers(keys.changes, { ...only, order: 'desc', offset: 0, limit });
}

/** An interaction after the event of a revision, folded from its own events. */
export async function interactionUntil(
  sources: PastSources,
  keys: InteractionKeys,
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
    return sequenceOf(event.revision) === (sequence as ChannelSequence) ? posted(event) : interaction;
  }
  // As in the fold of the whole stream, what is complete does not change.
  const isOwn = event.data.sequence === sequence && interaction !== null && !interaction.complete;
  return isOwn ? changed(interaction, event) : interaction;
}

export function decoded(stored: StoredEvent): StreamEvent<InteractionEvent> | null {
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
