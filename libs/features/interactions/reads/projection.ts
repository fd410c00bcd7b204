import { CHANNEL_READ_MODEL } from '#libs/features/channels/index.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import { revisionMember, type Projection, type WriteOperation } from '#libs/platform/readmodel/index.ts';

import { changed, interactionCodec, interactionFold, posted } from '../interaction.ts';
import type { Interaction, InteractionEvent, InteractionsState, KnownSpan } from '../interaction.ts';
import { draftKeys, interactionKeysOf, type InteractionFacet, type InteractionKeys } from './interaction.keys.ts';
import { jsonAfter } from './resource.ts';

/** The interactions' part of a channel's projection. */
export const interactionsProjection: Projection<InteractionsState, InteractionEvent> = {
  ...CHANNEL_READ_MODEL,
  codec: interactionCodec,
  fold: interactionFold,
  project({ organizationId, id, before, events }, channelKeys) {
    const keys = interactionKeysOf(channelKeys);
    const owner = { organizationId, channelId: id };
    const drafts = draftKeys(organizationId, id);
    /** With the newest event of each. */
    const touched = new Map<
      ChannelSequence,
      { readonly interaction: Interaction; readonly event: StreamEvent<InteractionEvent> }
    >();
    const openedInRun = new Set<ChannelSequence>();
    const operations: WriteOperation[] = [];
    for (const event of events) {
      if (event.type === 'InteractionPosted.v1') {
        const interaction = posted(event);
        touched.set(interaction.sequence, { interaction, event });
        if (!interaction.complete) openedInRun.add(interaction.sequence);
        operations.push(...indexWrites(interaction, keys));
      } else {
        const sequence = event.data.sequence as ChannelSequence;
        const known = touched.get(sequence)?.interaction ?? before.open[sequence];
        // As in the fold: a complete interaction does not change.
        if (known === undefined || known.complete) continue;
        touched.set(sequence, { interaction: changed(known, event), event });
        operations.push({ command: 'ZADD', key: keys.changes, args: [sequence, revisionMember(event.revision)] });
      }
    }
    for (const { interaction, event } of touched.values()) {
      const { sequence } = interaction;
      const document = jsonAfter(event, interaction, owner);
      operations.push({ command: 'HSET', key: keys.documents, args: [sequence, document] });
      if (!interaction.complete) {
        operations.push({ command: 'ZADD', key: keys.index('incomplete'), args: [sequence, sequence] });
      } else if (sequence in before.open || openedInRun.has(sequence)) {
        // An interaction posted and completed in this run may be in the index from before a rebuild.
        operations.push({ command: 'ZREM', key: keys.index('incomplete'), args: [sequence] });
        // In the same call, so that no reader finds a complete interaction with a draft.
        operations.push({ command: 'DEL', key: `${drafts.textPrefix}${sequence}`, args: [] });
        operations.push({ command: 'HDEL', key: drafts.lengths, args: [sequence] });
      }
    }
    return { operations, lists: [] };
  },
};

/** The entries of a new interaction in the indexes of facets, spans and the tree. */
function indexWrites(interaction: Interaction, keys: InteractionKeys): WriteOperation[] {
  const { sequence, contentRole, turnId, spanId, parentSpanId, depth } = interaction;
  const facets: InteractionFacet[] = ['all', `role=${contentRole}`];
  if (turnId !== null) facets.push(`turn=${turnId}`);
  const operations: WriteOperation[] = facets.map((facet) => ({
    command: 'ZADD',
    key: keys.index(facet),
    args: [sequence, sequence],
  }));
  operations.push({ command: 'HSET', key: keys.spans, args: [spanId, encodeSpan({ depth, turnId })] });
  if (parentSpanId !== null) {
    operations.push({ command: 'ZADD', key: keys.children, args: [0, childMember(parentSpanId, sequence)] });
  }
  return operations;
}

function encodeSpan({ depth, turnId }: KnownSpan): string {
  return `${depth} ${turnId ?? ''}`.trimEnd();
}

export function decodeSpan(stored: string): KnownSpan {
  const [depth, turnId] = stored.split(' ');
  return { depth: Number(depth), turnId: turnId ?? null };
}

const SEQUENCE_DIGITS = 12;

/** Members sort by parent, and the children of one parent by sequence. */
function childMember(parentSpanId: string, sequence: ChannelSequence): string {
  return `${parentSpanId} ${String(sequence).padStart(SEQUENCE_DIGITS, '0')}`;
}
