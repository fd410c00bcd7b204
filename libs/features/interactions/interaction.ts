/*
 * WARNING: the names and shapes of events are the storage format: the log keeps them forever. Never change one in place.
 * A new version is a new type, and the old one gets an upcaster.
 *
 * Interactions are events of their channel's stream, `channel-<id>`, so that one sequence orders all events of a channel.
 */
import { z } from 'zod';

import type { ChannelState } from '#libs/features/channels/index.ts';
import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, refuse, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { sequenceOf, type ChannelSequence, type StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

import { contentRole } from './interaction.content.ts';

/*
 * Content, participants and configuration are stored as the contract names them. Requests are checked in full; stored
 * events only for what folds rely on, because reads of the log check every event.
 */
const typed = z.looseObject({ type: z.string() });
const jsonMap = z.record(z.string(), z.unknown());
const content = z.array(typed);

export const interactionCodec = defineEvents({
  'InteractionPosted.v1': z.object({
    participant: typed,
    content,
    contentRole,
    complete: z.boolean(),
    metadata: jsonMap.nullable(),
    invocationConfig: jsonMap.nullable(),
    /** Id of the user turn; `interaction_id` in the API. */
    turnId: z.string().nullable(),
    spanId: z.string(),
    parentSpanId: z.string().nullable(),
    /** Level in its tree; 1 for the root. */
    depth: z.int().positive(),
    organizationApplication: z.string().nullable(),
  }),
  'InteractionContentAppended.v1': z.object({ sequence: z.int().positive(), content }),
  /** `content` replaces the content so far; null keeps it. */
  'InteractionCompleted.v1': z.object({ sequence: z.int().positive(), content: content.nullable() }),
  'InteractionFailed.v1': z.object({ sequence: z.int().positive(), reason: z.string() }),
});

export type InteractionEvent = EventOf<typeof interactionCodec>;
export type PostedEvent = Extract<InteractionEvent, { type: 'InteractionPosted.v1' }>;
export type ChangeEvent = Exclude<InteractionEvent, PostedEvent>;
export type InteractionPosted = PostedEvent['data'];
export type StoredContent = z.infer<typeof content>;

/** Limit of the depth of a tree of spans. */
export const MAX_DEPTH = 64;
/** Limits of a channel's incomplete interactions: their number, and their bytes in total. */
export const MAX_OPEN = 64;
export const MAX_OPEN_BYTES = 1024 * 1024;

/** An interaction folded from its events. */
export interface Interaction extends InteractionPosted {
  readonly sequence: ChannelSequence;
  readonly createdAt: Timestamp;
  readonly failure: string | null;
}

/** An incomplete interaction with its size, which each event increases: measuring it would serialise all of it. */
export interface OpenInteraction extends Interaction {
  readonly bytes: number;
}

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
    const bytes = open.bytes + bytesOf(event.data.content);
    return { open: { ...state.open, [sequence]: { ...changed(open, event), bytes } } };
  },
};

export function opened(interaction: Interaction): OpenInteraction {
  return { ...interaction, bytes: bytesOfPost(interaction) };
}

export function posted(event: StreamEvent<PostedEvent>): Interaction {
  return { ...event.data, sequence: sequenceOf(event.revision), createdAt: event.metadata.at, failure: null };
}

export function changed(interaction: Interaction, event: ChangeEvent): Interaction {
  switch (event.type) {
    case 'InteractionContentAppended.v1':
      return { ...interaction, content: [...interaction.content, ...event.data.content] };
    case 'InteractionCompleted.v1':
      return { ...interaction, content: event.data.content ?? interaction.content, complete: true };
    case 'InteractionFailed.v1':
      return { ...interaction, complete: true, failure: event.data.reason };
  }
}

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

/** Bytes of the members that callers control: each event of an open interaction writes the whole state to Redis. */
function bytesOfPost({ content, ...post }: Omit<InteractionPosted, 'depth' | 'turnId'>): number {
  const { participant, metadata, invocationConfig } = post;
  return bytesOf(content) + Buffer.byteLength(JSON.stringify({ participant, metadata, invocationConfig }));
}

/** Bytes of the items as JSON, each with a comma, so that the sizes of parts add up to that of the whole. */
function bytesOf(content: StoredContent): number {
  return content.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(content)) - 1;
}

type Found = { readonly ok: true; readonly interaction: Interaction } | Extract<InteractionDecision, { ok: false }>;

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
