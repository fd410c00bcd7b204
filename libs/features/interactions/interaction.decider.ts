import type { ChannelState } from '#libs/features/channels/index.ts';
import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Decision, Fold } from '#libs/kernel/decider.ts';
import { accept, refuse } from '#libs/kernel/decider.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { InteractionEvent, InteractionPosted, StoredContent } from './interaction.events.ts';

/** How deep a tree of spans may be. */
export const MAX_DEPTH = 64;
/** Interactions of one channel that may be incomplete at a time, and what they may hold together. */
export const MAX_OPEN = 64;
export const MAX_OPEN_BYTES = 1024 * 1024;

/** An interaction folded from its events. */
export interface Interaction extends InteractionPosted {
  readonly sequence: ChannelSequence;
  readonly createdAt: Timestamp;
  readonly failure: string | null;
}

/** Counted with each event, so that nobody has to serialise what is there to know how large it is. */
export interface OpenInteraction extends Interaction {
  readonly bytes: number;
}

/**
 * What is held of a channel's interactions: those that are not complete. The rest gathers without bound, and
 * is looked up.
 */
export interface InteractionsState {
  readonly open: Readonly<Record<string, OpenInteraction>>;
}

/** The state of a channel's stream that decisions about interactions are made on. */
export interface InteractionContext {
  readonly channel: ChannelState;
  readonly interactions: InteractionsState;
}

export type InteractionRejection =
  | { readonly reason: 'not_found' }
  | { readonly reason: 'archived' }
  | { readonly reason: 'parent_not_found' }
  | { readonly reason: 'span_taken' }
  | { readonly reason: 'too_deep' }
  /** `oldest`: of those that are incomplete; null where one alone would be too much. */
  | { readonly reason: 'too_many_open'; readonly oldest: ChannelSequence | null }
  | { readonly reason: 'complete_already' }
  | { readonly reason: 'not_the_sender' };

type InteractionDecision = Decision<InteractionEvent, InteractionRejection>;

export const interactionFold: Fold<InteractionsState, InteractionEvent> = {
  initialState: { open: {} },
  evolve(state, event) {
    if (event.type === 'InteractionPosted.v1') {
      if (event.data.complete) return state;
      const interaction = opened(posted(event));
      return { open: { ...state.open, [interaction.sequence]: interaction } };
    }
    const { sequence } = event.data;
    const open = state.open[sequence];
    if (open === undefined) return state;
    if (event.type !== 'InteractionContentAppended.v1') {
      const { [sequence]: _completed, ...others } = state.open;
      return { open: others };
    }
    const bytes = open.bytes + bytesOf(event.data.content);
    return { open: { ...state.open, [sequence]: { ...changed(open, event), bytes } } };
  },
};

/** An incomplete interaction, as it is held. */
export function opened(interaction: Interaction): OpenInteraction {
  return { ...interaction, bytes: bytesOfPost(interaction) };
}

/** The interaction that an event posts. */
export function posted(event: StreamEvent<Extract<InteractionEvent, { type: 'InteractionPosted.v1' }>>): Interaction {
  return { ...event.data, sequence: sequenceOf(event.revision), createdAt: event.metadata.at, failure: null };
}

/** The interaction after an event that changes it. */
export function changed(
  interaction: Interaction,
  event: Exclude<InteractionEvent, { type: 'InteractionPosted.v1' }>,
): Interaction {
  switch (event.type) {
    case 'InteractionContentAppended.v1':
      return { ...interaction, content: [...interaction.content, ...event.data.content] };
    case 'InteractionCompleted.v1':
      return { ...interaction, content: event.data.content ?? interaction.content, complete: true };
    case 'InteractionFailed.v1':
      return { ...interaction, complete: true, failure: event.data.reason };
  }
}

/** What is known of a span: where it stands in its tree and in its turn. */
export interface KnownSpan {
  readonly depth: number;
  readonly turnId: string | null;
}

/** An interaction to post, and what was found out about the spans that it names. */
export interface Post extends Omit<InteractionPosted, 'depth' | 'turnId'> {
  readonly organizationId: EntityId;
  /** Null: that of the parent, else one of its own. */
  readonly turnId: string | null;
  readonly parent: KnownSpan | null;
  readonly spanTaken: boolean;
}

export function decidePost({ channel, interactions }: InteractionContext, post: Post): InteractionDecision {
  const { organizationId, parent, spanTaken, ...data } = post;
  if (channel === null || channel.organizationId !== organizationId) return refuse({ reason: 'not_found' });
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  if (data.parentSpanId !== null && (parent === null || data.parentSpanId === data.spanId)) {
    return refuse({ reason: 'parent_not_found' });
  }
  if (spanTaken) return refuse({ reason: 'span_taken' });
  const depth = (parent?.depth ?? 0) + 1;
  if (depth > MAX_DEPTH) return refuse({ reason: 'too_deep' });
  if (!data.complete && isFull(interactions, bytesOfPost(data))) return refuse(tooManyOpen(interactions));
  const turnId = data.turnId ?? parent?.turnId ?? data.spanId;
  return accept({ type: 'InteractionPosted.v1', data: { ...data, depth, turnId } });
}

/** Whether an update may be shown in the channel: under the rules of a post, but it takes no place. */
export function decideUpdate(
  context: InteractionContext,
  post: Post,
): { readonly ok: true; readonly interaction: InteractionPosted } | Extract<InteractionDecision, { ok: false }> {
  const decision = decidePost(context, { ...post, complete: true });
  if (!decision.ok) return decision;
  const [event] = decision.events;
  if (event?.type !== 'InteractionPosted.v1') throw new TypeError('a post was accepted and posts nothing');
  return { ok: true, interaction: { ...event.data, complete: post.complete } };
}

/** Whose interaction a command expects to find, and where. */
export interface InteractionTarget {
  readonly organizationId: EntityId;
  readonly sequence: ChannelSequence;
  /** Whether there is an interaction at that place at all. */
  readonly exists: boolean;
  /** Whether the caller may write as the sender of the interaction. */
  isSender(sender: InteractionPosted['participant']): boolean;
}

export function decideAppend(
  state: InteractionContext,
  target: InteractionTarget,
  content: StoredContent,
): InteractionDecision {
  const found = findOwn(state, target);
  if (!found.ok) return found;
  if (content.length === 0) return accept();
  if (isFull(state.interactions, bytesOf(content), 0)) return refuse(tooManyOpen(state.interactions));
  return accept({ type: 'InteractionContentAppended.v1', data: { sequence: target.sequence, content } });
}

export function decideComplete(
  state: InteractionContext,
  target: InteractionTarget,
  content: StoredContent | null,
): InteractionDecision {
  const found = findOwn(state, target);
  if (!found.ok) return found;
  return accept({ type: 'InteractionCompleted.v1', data: { sequence: target.sequence, content } });
}

export function decideFail(state: InteractionContext, target: InteractionTarget, reason: string): InteractionDecision {
  const found = findOpen(state, target);
  if (!found.ok) return found;
  return accept({ type: 'InteractionFailed.v1', data: { sequence: target.sequence, reason } });
}

/** What a channel's incomplete interactions fail with when it is archived. */
export const ARCHIVED_REASON = 'The channel was archived';

/** Ends all incomplete interactions: nothing could end them in an archived channel. */
export function decideEndings({ open }: InteractionsState): InteractionEvent[] {
  return Object.values(open).map(({ sequence }) => ({
    type: 'InteractionFailed.v1',
    data: { sequence, reason: ARCHIVED_REASON },
  }));
}

function isFull({ open }: InteractionsState, moreBytes: number, more = 1): boolean {
  const all = Object.values(open);
  if (all.length + more > MAX_OPEN) return true;
  return all.reduce((sum, { bytes }) => sum + bytes, moreBytes) > MAX_OPEN_BYTES;
}

/** Whoever began it may be gone: who is refused has to know what to end. */
function tooManyOpen({ open }: InteractionsState): InteractionRejection {
  const sequences = Object.values(open).map(({ sequence }) => sequence);
  const oldest = sequences.reduce<ChannelSequence | null>((low, one) => (low === null || one < low ? one : low), null);
  return { reason: 'too_many_open', oldest };
}

/** All that callers can make large: each event of an incomplete interaction writes the state with it anew. */
function bytesOfPost({ content, ...post }: Omit<InteractionPosted, 'depth' | 'turnId'>): number {
  const { participant, metadata, invocationConfig } = post;
  return bytesOf(content) + Buffer.byteLength(JSON.stringify({ participant, metadata, invocationConfig }));
}

/** As JSON, each item with a comma: so that parts add up to the whole. */
function bytesOf(content: StoredContent): number {
  return content.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(content)) - 1;
}

type Found = { readonly ok: true; readonly interaction: Interaction } | Extract<InteractionDecision, { ok: false }>;

/** Another organization's interaction is refused just as one that does not exist. */
function findOpen({ channel, interactions }: InteractionContext, target: InteractionTarget): Found {
  const { organizationId, sequence, exists } = target;
  if (channel === null || channel.organizationId !== organizationId || !exists) return refuse({ reason: 'not_found' });
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  const interaction = interactions.open[sequence];
  return interaction === undefined ? refuse({ reason: 'complete_already' }) : { ok: true, interaction };
}

/** What its sender, or who may write as that, has begun. */
function findOwn(state: InteractionContext, target: InteractionTarget): Found {
  const found = findOpen(state, target);
  return found.ok && !target.isSender(found.interaction.participant) ? refuse({ reason: 'not_the_sender' }) : found;
}
