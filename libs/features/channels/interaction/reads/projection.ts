import { type ChannelSequence, sequenceOf, type StreamEvent } from '#libs/kernel/event.ts';
import { revisionMember, type StoredState, type WriteOperation } from '#libs/platform/readmodel/index.ts';

import {
  type ChangeEvent,
  type Interaction,
  type InteractionEvent,
  isSuperseding,
  posted,
} from '../interaction.events.ts';
import type { InteractionsState, KnownSpan } from '../interaction.ts';
import { changedOpen, itemsOf, joinItems, opened, type OpenInteraction } from '../open-interaction.ts';
import { draftKeys, channelKeysOf, type InteractionFacet, type ChannelKeys } from '../../channel.keys.ts';
import { changedJson, openFromJson, openJson, openParts, postedJson, supersededJson, type Owner } from './resource.ts';

/** Depth by sequence. The documents hold the rest of the incomplete interactions, and each event would write it twice. */
type PackedState = Readonly<Record<string, number>>;

/** How the state of the interactions is stored. */
export const storedInteractions: StoredState<InteractionsState> = {
  pack: ({ open }): PackedState => Object.fromEntries(Object.values(open).map((one) => [one.sequence, one.depth])),
  keysOf: (packed, keys) => Object.keys(packed as PackedState).map(channelKeysOf(keys).open),
  unpack(packed, documents) {
    const depths = Object.entries(packed as PackedState);
    const open = depths.map(([sequence, depth], at) => [sequence, openFromJson(documents[at] ?? '', depth)]);
    return { open: Object.fromEntries(open) as InteractionsState['open'] };
  },
};

/**
 * The writes of interactions: absolute values as of the last event.
 *
 * @param before the state before the first of the events
 */
export function interactionWrites(
  events: readonly StreamEvent<InteractionEvent>[],
  before: InteractionsState,
  owner: Owner,
  keys: ChannelKeys,
): WriteOperation[] {
  const touched = new Map<ChannelSequence, Touched>();
  const operations: WriteOperation[] = [];
  const read = new Map<string, ChannelSequence>();
  const write = (one: Touched): void => {
    operations.push(...(one.after.complete ? completedWrites(one, keys, owner) : openWrites(one, keys, owner)));
    if (one.event !== null && one.after.complete) noteReader(read, one.after, sequenceOf(one.event.revision));
  };
  for (const event of events) {
    if (event.type === 'InteractionPosted.v1') {
      const interaction = posted(event);
      const { sequence } = interaction;
      operations.push(...indexWrites(interaction, keys));
      operations.push({ command: 'HSET', key: keys.documents, args: [sequence, postedJson(event, owner)] });
      if (interaction.complete) {
        operations.push(...messageWrites(interaction, sequence, keys));
        noteReader(read, interaction, sequence);
      } else touched.set(sequence, { after: opened(interaction), event: null, stored: null });
    } else if (isSuperseding(event)) {
      const sequence = event.data.sequence as ChannelSequence;
      // The interaction is complete, maybe since an earlier event of the run, whose writes come first.
      const known = touched.get(sequence);
      if (known !== undefined) write(known);
      touched.delete(sequence);
      operations.push({ command: 'HSET', key: keys.documents, args: [sequence, supersededJson(event, owner)] });
      operations.push({ command: 'ZADD', key: keys.changes, args: [sequence, revisionMember(event.revision)] });
      if (event.type === 'InteractionDeleted.v1') {
        operations.push({ command: 'ZADD', key: keys.deleted, args: [sequence, sequence] });
        operations.push({ command: 'ZREM', key: keys.messages, args: [sequence] });
      }
    } else {
      const sequence = event.data.sequence as ChannelSequence;
      const known = touched.get(sequence) ?? storedIn(before, sequence);
      // As in the fold: a complete interaction does not change.
      if (known === undefined || known.after.complete) continue;
      touched.set(sequence, touchedBy(event, known));
      operations.push({ command: 'ZADD', key: keys.changes, args: [sequence, revisionMember(event.revision)] });
    }
  }
  for (const one of touched.values()) write(one);
  for (const [id, sequence] of read) operations.push({ command: 'HSET', key: keys.read, args: [id, sequence] });
  return operations;
}

/** An interaction that was incomplete, before a run of events or in it. */
interface Touched {
  readonly after: OpenInteraction;
  /** The last event that changed it; null if the run has none. */
  readonly event: StreamEvent<ChangeEvent> | null;
  /** As it was stored before the run, and the items that the run adds; null if the run writes the whole document. */
  readonly stored: { readonly before: OpenInteraction; readonly added: string } | null;
}

function storedIn({ open }: InteractionsState, sequence: ChannelSequence): Touched | undefined {
  const before = open[sequence];
  return before && { after: before, event: null, stored: { before, added: '' } };
}

function touchedBy(event: StreamEvent<ChangeEvent>, { after: known, stored }: Touched): Touched {
  const after = changedOpen(known, event);
  if (stored === null || event.type === 'InteractionFailed.v1' || event.data.content === null) {
    return { after, event, stored };
  }
  if (event.type === 'InteractionCompleted.v2') return { after, event, stored: null };
  return { after, event, stored: { ...stored, added: joinItems(stored.added, itemsOf(event.data.content)) } };
}

/** Writes only the end of a document that is stored already, so that an addition costs the same at any length. */
function openWrites({ after, stored }: Touched, keys: ChannelKeys, owner: Owner): WriteOperation[] {
  const { sequence } = after;
  const key = keys.open(sequence);
  const listed = { command: 'ZADD', key: keys.index('incomplete'), args: [sequence, sequence] } as const;
  if (stored === null) return [{ command: 'SET', key, args: [openJson(after, owner)] }, listed];
  const { before, added } = stored;
  if (added === '') return [];
  const { head, tail } = openParts(after, owner);
  const kept = Buffer.byteLength(head) + before.itemBytes;
  return [{ command: 'SETRANGE', key, args: [kept, (before.items === '' ? '' : ',') + added + tail] }];
}

function completedWrites({ after, event }: Touched, keys: ChannelKeys, owner: Owner): WriteOperation[] {
  const { sequence } = after;
  const drafts = draftKeys(owner.organizationId, owner.channelId);
  return [
    {
      command: 'HSET',
      key: keys.documents,
      args: [sequence, event ? changedJson(after, event, owner) : openJson(after, owner)],
    },
    ...messageWrites(after, event === null ? sequence : sequenceOf(event.revision), keys),
    // An interaction posted and completed in one run may be in Redis from before a rebuild.
    { command: 'DEL', key: keys.open(sequence), args: [] },
    { command: 'ZREM', key: keys.index('incomplete'), args: [sequence] },
    // In the same call, so that no reader finds a complete interaction with a draft.
    { command: 'DEL', key: `${drafts.textPrefix}${sequence}`, args: [] },
    { command: 'HDEL', key: drafts.lengths, args: [sequence] },
  ];
}

/** @param at sequence of the event that completed the interaction: a user that has read up to there has seen it */
function messageWrites(
  { contentRole, sequence }: Pick<Interaction, 'contentRole' | 'sequence'>,
  at: ChannelSequence,
  keys: ChannelKeys,
): WriteOperation[] {
  const isMessage = contentRole === 'user_message' || contentRole === 'agent_response';
  return isMessage ? [{ command: 'ZADD', key: keys.messages, args: [at, sequence] }] : [];
}

/** The sender, if it is a user, has read everything up to its own interaction. */
function noteReader(
  read: Map<string, ChannelSequence>,
  { participant }: Pick<Interaction, 'participant'>,
  at: ChannelSequence,
): void {
  const { type, user_id: id } = participant;
  if (type !== 'authenticated_user' || typeof id !== 'string') return;
  read.set(id, Math.max(at, read.get(id) ?? 0) as ChannelSequence);
}

/** The entries of a new interaction in the indexes of facets, spans and the tree. */
function indexWrites(interaction: Interaction, keys: ChannelKeys): WriteOperation[] {
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
