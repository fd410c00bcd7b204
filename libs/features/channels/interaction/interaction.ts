/* The state of a channel's interactions, and the decisions about them. */
import type { ChannelState } from '../channel/channel.ts';
import { accept, refuse, type Decision, type Fold } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import {
  type FinalDetails,
  type InteractionEvent,
  type InteractionPosted,
  posted,
  type PostedEvent,
  type StoredContent,
} from './interaction.events.ts';
import { bytesOf, bytesOfPost, changedOpen, opened, type OpenInteraction } from './open-interaction.ts';

/** Limit of the depth of a tree of spans. */
export const MAX_DEPTH = 64;
/** Limits of a channel's incomplete interactions: their number, and their bytes in total. */
export const MAX_OPEN = 64;
export const MAX_OPEN_BYTES = 1024 * 1024;

/** The incomplete interactions of a channel by sequence. The others are unbounded, so commands look them up by key. */
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
  /** `oldest`: the oldest incomplete interaction; null where there is none, and this one alone is too large. */
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
    return { open: { ...state.open, [sequence]: changedOpen(open, event) } };
  },
};

/** The depth of a span in its tree, and its turn. */
export interface KnownSpan {
  readonly depth: number;
  readonly turnId: string | null;
}

/** An interaction to post, with the results of the look-ups of its spans. */
export interface Post extends Omit<InteractionPosted, 'depth' | 'turnId'> {
  readonly organizationId: EntityId;
  /** Null: the turn of the parent, or a new one without a parent. */
  readonly turnId: string | null;
  readonly parent: KnownSpan | null;
  readonly spanTaken: boolean;
}

export function decidePost(
  { channel, interactions }: InteractionContext,
  post: Post,
): Decision<PostedEvent, InteractionRejection> {
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

/** The interaction that a command changes, and the caller. */
export interface InteractionTarget {
  readonly organizationId: EntityId;
  readonly sequence: ChannelSequence;
  /** Whether the event of the sequence is an interaction. */
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
  { metadata = null, invocationConfig = null }: FinalDetails = {},
): InteractionDecision {
  const found = findOwn(state, target);
  if (!found.ok) return found;
  const data = { sequence: target.sequence, content, metadata, invocationConfig };
  return accept({ type: 'InteractionCompleted.v2', data });
}

export function decideFail(state: InteractionContext, target: InteractionTarget, reason: string): InteractionDecision {
  const found = findOwn(state, target);
  if (!found.ok) return found;
  return accept({ type: 'InteractionFailed.v1', data: { sequence: target.sequence, reason } });
}

const ARCHIVED_REASON = 'The channel was archived';

/** Fails all incomplete interactions: an archived channel refuses the commands that could complete them. */
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

/** Includes the oldest one: its client may have crashed, and other clients can fail it. */
function tooManyOpen({ open }: InteractionsState): InteractionRejection {
  const sequences = Object.values(open).map(({ sequence }) => sequence);
  const oldest = sequences.reduce<ChannelSequence | null>((low, one) => (low === null || one < low ? one : low), null);
  return { reason: 'too_many_open', oldest };
}

type Found = { readonly ok: true; readonly interaction: OpenInteraction } | Extract<InteractionDecision, { ok: false }>;

/** Another organization's interaction is rejected like a missing one. */
function findOpen({ channel, interactions }: InteractionContext, target: InteractionTarget): Found {
  const { organizationId, sequence, exists } = target;
  if (channel === null || channel.organizationId !== organizationId || !exists) return refuse({ reason: 'not_found' });
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  const interaction = interactions.open[sequence];
  return interaction === undefined ? refuse({ reason: 'complete_already' }) : { ok: true, interaction };
}

/** As `findOpen`, for callers that may write as the sender of the interaction. */
function findOwn(state: InteractionContext, target: InteractionTarget): Found {
  const found = findOpen(state, target);
  return found.ok && !target.isSender(found.interaction.participant) ? refuse({ reason: 'not_the_sender' }) : found;
}
