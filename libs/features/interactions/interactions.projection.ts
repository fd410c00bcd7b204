import { CHANNEL } from '#libs/features/channels/index.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { revisionMember } from '#libs/platform/readmodel/index.ts';
import type { Projection, WriteOperation } from '#libs/platform/readmodel/index.ts';

import { changed, interactionFold, posted } from './interaction.decider.ts';
import type { Interaction, InteractionsState, KnownSpan } from './interaction.decider.ts';
import { interactionCodec } from './interaction.events.ts';
import type { InteractionEvent } from './interaction.events.ts';
import { interactionId } from './interaction.id.ts';
import { draftKeys, interactionKeysOf } from './interactions.keys.ts';
import type { InteractionFacet, InteractionKeys } from './interactions.keys.ts';

/** The part of a channel's projection that is about its interactions. */
export const interactionsProjection: Projection<InteractionsState, InteractionEvent> = {
  category: CHANNEL,
  codec: interactionCodec,
  fold: interactionFold,
  project({ organizationId, id, before, events }, channelKeys) {
    const keys = interactionKeysOf(channelKeys);
    const owner = { organizationId, channelId: id };
    const drafts = draftKeys(organizationId, id);
    const touched = new Map<ChannelSequence, Interaction>();
    const begunHere = new Set<ChannelSequence>();
    /** Of those that are still as they were posted. */
    const posts = new Map<ChannelSequence, StreamEvent<PostedEvent>>();
    const operations: WriteOperation[] = [];
    for (const event of events) {
      if (event.type === 'InteractionPosted.v1') {
        const interaction = posted(event);
        touched.set(interaction.sequence, interaction);
        posts.set(interaction.sequence, event);
        if (!interaction.complete) begunHere.add(interaction.sequence);
        operations.push(...placed(interaction, keys));
      } else {
        const sequence = event.data.sequence as ChannelSequence;
        const known = touched.get(sequence) ?? before.open[sequence];
        // What is not open any more does not change: the fold ignores such an event as well.
        if (known === undefined || known.complete) continue;
        touched.set(sequence, changed(known, event));
        posts.delete(sequence);
        operations.push({ command: 'ZADD', key: keys.changes, args: [sequence, revisionMember(event.revision)] });
      }
    }
    for (const interaction of touched.values()) {
      const { sequence } = interaction;
      const post = posts.get(sequence);
      const document = post ? postedJson(post, owner) : JSON.stringify(interactionResource(interaction, owner));
      operations.push({ command: 'HSET', key: keys.documents, args: [sequence, document] });
      if (!interaction.complete) {
        operations.push({ command: 'ZADD', key: keys.index('incomplete'), args: [sequence, sequence] });
      } else if (sequence in before.open || begunHere.has(sequence)) {
        // Begun and completed in this very run, it may still stand there from before a fold from the beginning.
        operations.push({ command: 'ZREM', key: keys.index('incomplete'), args: [sequence] });
        // In the same step: whoever sees it complete sees no text that is still being written.
        operations.push({ command: 'DEL', key: `${drafts.textPrefix}${sequence}`, args: [] });
        operations.push({ command: 'HDEL', key: drafts.lengths, args: [sequence] });
      }
    }
    return { operations, lists: [] };
  },
};

type PostedEvent = Extract<InteractionEvent, { type: 'InteractionPosted.v1' }>;
type Owner = Parameters<typeof interactionResource>[1];

/** By event, so that it goes with it. */
const postedTexts = new WeakMap<StreamEvent<PostedEvent>, string>();

/** The resource of an interaction as it was posted; the read model and the frame of the event both want it. */
export function postedJson(event: StreamEvent<PostedEvent>, owner: Owner): string {
  const known = postedTexts.get(event);
  if (known !== undefined) return known;
  const text = JSON.stringify(interactionResource(posted(event), owner));
  postedTexts.set(event, text);
  return text;
}

/** Where a new interaction is found: its facets, its span, its place in the tree. */
function placed(interaction: Interaction, keys: InteractionKeys): WriteOperation[] {
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

export function encodeSpan({ depth, turnId }: KnownSpan): string {
  return `${depth} ${turnId ?? ''}`.trimEnd();
}

export function decodeSpan(stored: string): KnownSpan {
  const [depth, turnId] = stored.split(' ');
  return { depth: Number(depth), turnId: turnId ?? null };
}

const SEQUENCE_DIGITS = 12;

/** Sorts by parent, and below it by sequence. */
export function childMember(parentSpanId: string, sequence: ChannelSequence): string {
  return `${parentSpanId} ${String(sequence).padStart(SEQUENCE_DIGITS, '0')}`;
}

/** The interaction as the API answers it (contract, section 2.12), without what depends on the reader. */
export function interactionResource(
  interaction: Interaction,
  owner: { readonly organizationId: EntityId; readonly channelId: EntityId },
): object {
  const { sequence } = interaction;
  return resource(interaction, owner, { id: interactionId({ channelId: owner.channelId, sequence }), sequence });
}

/** An interaction that is in no log, and can be read by no id: it looks like the others, without a sequence. */
export function ephemeralResource(
  interaction: Omit<Interaction, 'sequence'>,
  owner: { readonly organizationId: EntityId; readonly channelId: EntityId },
  id: EntityId,
): object {
  return resource(interaction, owner, { id, sequence: null });
}

function resource(
  interaction: Omit<Interaction, 'sequence'>,
  owner: { readonly organizationId: EntityId; readonly channelId: EntityId },
  { id, sequence }: { readonly id: EntityId; readonly sequence: ChannelSequence | null },
): object {
  const { failure, metadata } = interaction;
  return {
    id,
    created_at: interaction.createdAt,
    channel_id: owner.channelId,
    participant: interaction.participant,
    content: interaction.content,
    content_role: interaction.contentRole,
    metadata: failure === null ? metadata : { ...metadata, failure },
    invocation_config: interaction.invocationConfig,
    interaction_id: interaction.turnId,
    sequence,
    span_id: interaction.spanId,
    parent_span_id: interaction.parentSpanId,
    organization_id: owner.organizationId,
    organization_application: interaction.organizationApplication,
    // These last, and in this order: they are found, and replaced, in the stored bytes. See `isComplete` and `annotated`.
    complete: interaction.complete,
    reactions: null,
    mention_invite_prompt_dismissed: false,
    agent_read_receipts: null,
  };
}
