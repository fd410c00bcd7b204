/* The state of a channel's interactions, and the decisions about them. */
import { type ActingAs, type Caller, mayActAs, UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import { accept, refuse, type Decision, type Fold } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import { type ChannelEvent, type ChannelState, refusalOf } from '../channel/channel.ts';
import {
  type FinalDetails,
  type InteractionEvent,
  type InteractionPosted,
  isSuperseding,
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

/** The state of a channel's stream, on which decisions are made. Marks leave nothing in it: commands look them up by key. */
export interface ChannelStream {
  readonly channel: ChannelState;
  readonly interactions: InteractionsState;
}

/** The participant of a stored interaction. */
export interface Sender {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The caller, or the operator of the installation, which may write as any sender. */
export type Writer = Caller | 'operator';

export function mayWriteAs(writer: Writer, sender: Sender): boolean {
  return writer === 'operator' || mayActAs(writer, actingAs(sender));
}

function actingAs({ type, user_id: userId }: Sender): ActingAs {
  switch (type) {
    case 'authenticated_user':
      return { type: 'user', id: String(userId) };
    case 'system':
      return { type: 'system' };
    default:
      return UNAUTHENTICATED;
  }
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
  /** Only complete messages of users and agents are edited and deleted. */
  | { readonly reason: 'not_editable' }
  | { readonly reason: 'deleted' }
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
    // Edits and deletions concern complete interactions.
    if (isSuperseding(event)) return state;
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
  { channel, interactions }: ChannelStream,
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
  state: ChannelStream,
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
  state: ChannelStream,
  target: InteractionTarget,
  content: StoredContent | null,
  { metadata = null, invocationConfig = null }: FinalDetails = {},
): InteractionDecision {
  const found = findOwn(state, target);
  if (!found.ok) return found;
  const data = { sequence: target.sequence, content, metadata, invocationConfig };
  return accept({ type: 'InteractionCompleted.v2', data });
}

export function decideFail(state: ChannelStream, target: InteractionTarget, reason: string): InteractionDecision {
  const found = findOwn(state, target);
  if (!found.ok) return found;
  return accept({ type: 'InteractionFailed.v1', data: { sequence: target.sequence, reason } });
}

const ARCHIVED_REASON = 'The channel was archived';

/**
 * Archives the channel, and fails its incomplete interactions, because an archived channel refuses the commands that could
 * complete them. `ChannelArchived.v1` is the last event of a stream: a channel that an earlier version archived with
 * incomplete interactions is archived again after these have been failed.
 */
export function decideArchive(
  { channel, interactions }: ChannelStream,
  context: Parameters<typeof refusalOf>[1] & { readonly organizationId: EntityId },
): Decision<ChannelEvent | InteractionEvent, { readonly reason: 'not_found' | 'not_owner' }> {
  if (channel?.organizationId !== context.organizationId) return refuse({ reason: 'not_found' });
  const refusal = refusalOf(channel, context);
  if (refusal !== null) return refuse(refusal);
  const open = Object.values(interactions.open);
  if (channel.archivedAt !== null && open.length === 0) return accept();
  const endings = open.map(({ sequence }) => ({
    type: 'InteractionFailed.v1' as const,
    data: { sequence, reason: ARCHIVED_REASON },
  }));
  return accept<ChannelEvent | InteractionEvent>(...endings, { type: 'ChannelArchived.v1', data: {} });
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
function findOpen({ channel, interactions }: ChannelStream, target: InteractionTarget): Found {
  const { organizationId, sequence, exists } = target;
  if (channel === null || channel.organizationId !== organizationId || !exists) return refuse({ reason: 'not_found' });
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  const interaction = interactions.open[sequence];
  return interaction === undefined ? refuse({ reason: 'complete_already' }) : { ok: true, interaction };
}

/** As `findOpen`, for callers that may write as the sender of the interaction. */
function findOwn(state: ChannelStream, target: InteractionTarget): Found {
  const found = findOpen(state, target);
  return found.ok && !target.isSender(found.interaction.participant) ? refuse({ reason: 'not_the_sender' }) : found;
}
