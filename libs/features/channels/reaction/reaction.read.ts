import { channelKeys, type ChannelKeys } from '../channel.keys.ts';
import { interactionId } from '../interaction/interaction.id.ts';
import type { Annotation } from '../interaction/reads/resource.ts';
import type { Reader } from '../interaction/reads/present.ts';
import { sequenceOf, type ChannelSequence, type StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CollectionReader, WriteOperation } from '#libs/platform/readmodel/index.ts';

import type { ReactionEvent } from './reaction.ts';
import {
  dismissalField,
  encodeCurrent,
  encodeDismissal,
  encodeReaction,
  encodeReceipt,
  encodeWithdrawn,
  markedField,
  type MarkedReaction,
  type MarkedReceipt,
  type Marks,
  marksBefore,
  reactionField,
  receiptField,
} from './reaction.marks.ts';

/** The writes of reactions, receipts and dismissals. They depend on the events alone. */
export function reactionWrites(events: readonly StreamEvent<ReactionEvent>[], keys: ChannelKeys): WriteOperation[] {
  return events.flatMap((event) => writesOf(event, keys));
}

function writesOf(event: StreamEvent<ReactionEvent>, keys: ChannelKeys): WriteOperation[] {
  const { sequence } = event.data;
  switch (event.type) {
    case 'ReactionAdded.v1': {
      const { reactor, emoji } = event.data;
      const addedSequence = sequenceOf(event.revision);
      const known = encodeCurrent({ addedSequence, name: reactor.name });
      const member = encodeReaction(event.data, addedSequence);
      return mark(keys, sequence, member, reactionField(sequence, reactor, emoji), known);
    }
    case 'ReactionRemoved.v1': {
      const { reactor, emoji, addedAt: addedSequence } = event.data;
      const withdrawnSequence = sequenceOf(event.revision);
      const withdrawn = encodeWithdrawn(event.data, { addedSequence, withdrawnSequence });
      return [
        { command: 'ZREM', key: keys.marks, args: [encodeReaction(event.data, addedSequence)] },
        { command: 'ZADD', key: keys.withdrawnMarks, args: [sequence, withdrawn] },
        { command: 'HDEL', key: keys.knownMarks, args: [reactionField(sequence, reactor, emoji)] },
      ];
    }
    case 'ReadReceiptRecorded.v1':
      return mark(keys, sequence, encodeReceipt(event), receiptField(sequence, event.data.agentId));
    case 'MentionInvitePromptDismissed.v1': {
      const member = encodeDismissal(event.data.userId, sequenceOf(event.revision));
      return mark(keys, sequence, member, dismissalField(sequence));
    }
  }
}

function mark(keys: ChannelKeys, sequence: number, member: string, field: string, known = '1'): WriteOperation[] {
  return [
    { command: 'ZADD', key: keys.marks, args: [sequence, member] },
    { command: 'HSET', key: keys.knownMarks, args: [field, known] },
    { command: 'HSET', key: keys.documents, args: [markedField(sequence), '1'] },
  ];
}

export const NO_ANNOTATIONS: ReadonlyMap<number, Annotation> = new Map();

/** Adds reactions, receipts and dismissals to interactions that are read. */
export class ReactionAnnotations {
  readonly #collections: CollectionReader;

  constructor(collections: CollectionReader) {
    this.#collections = collections;
  }

  /** The current reactions of interactions, with their reactors, by the sequence of the interaction. */
  async reactionsOf(
    organizationId: EntityId,
    channelId: EntityId,
    sequences: readonly number[],
  ): Promise<ReadonlyMap<number, readonly MarkedReaction[]>> {
    const { marks } = channelKeys(organizationId, channelId);
    const found = await this.#collections.withScores(marks, sequences);
    return new Map([...found].map(([sequence, members]) => [sequence, marksBefore(Infinity, members).reactions]));
  }

  /**
   * The annotations of interactions as a reader sees them, by the sequence of the interaction. Interactions without any
   * are left out. The first request to Redis is sent synchronously, so that it is batched with the other requests of the
   * same iteration of the event loop.
   *
   * @param end excludes annotations by events from this sequence on; `Infinity` includes all
   * @throws `Fault` `store_unavailable`
   */
  async of(
    organizationId: EntityId,
    channelId: EntityId,
    sequences: readonly number[],
    reader: Reader,
    end: number,
  ): Promise<ReadonlyMap<number, Annotation>> {
    if (sequences.length === 1) {
      const { documents } = channelKeys(organizationId, channelId);
      // Most interactions have no marks. In the same iteration of the event loop, the document is read from the same hash.
      const [marked] = await this.#collections.fields(documents, [markedField(sequences[0] ?? 0)]);
      if (!marked) return NO_ANNOTATIONS;
    }
    return this.ofMarked(organizationId, channelId, sequences, reader, end);
  }

  /** The same where some are known to have marks; all is requested synchronously. */
  async ofMarked(
    organizationId: EntityId,
    channelId: EntityId,
    sequences: readonly number[],
    reader: Reader,
    end = Infinity,
  ): Promise<ReadonlyMap<number, Annotation>> {
    const { marks, withdrawnMarks } = channelKeys(organizationId, channelId);
    const [current, gone] = await Promise.all([
      this.#collections.withScores(marks, sequences),
      // Read after the marks, so that a reaction that is removed in between is in both, not in neither.
      end === Infinity ? new Map<number, string[]>() : this.#collections.withScores(withdrawnMarks, sequences),
    ]);
    const annotations = new Map<number, Annotation>();
    for (const sequence of new Set([...current.keys(), ...gone.keys()])) {
      const found = marksBefore(end, current.get(sequence) ?? [], gone.get(sequence));
      const id = interactionId({ channelId, sequence: sequence as ChannelSequence });
      annotations.set(sequence, annotationOf(id, found, reader));
    }
    return annotations;
  }
}

/** The contract's members (section 2.12) of one interaction, as `reader` sees them. */
function annotationOf(id: EntityId, marks: Marks, reader: Reader): Annotation {
  const byEmoji = Map.groupBy(marks.reactions, ({ emoji }) => emoji);
  return {
    reactions: byEmoji.size === 0 ? null : [...byEmoji].map(([emoji, of]) => summaryOf(id, emoji, of, reader)),
    mention_invite_prompt_dismissed: reader.userId !== null && marks.dismissedBy.includes(reader.userId),
    agent_read_receipts: marks.receipts.length === 0 ? null : marks.receipts.map((one) => receiptResource(id, one)),
  };
}

/** @param reactions at least one, all with the same emoji, in the order of their events */
function summaryOf(id: EntityId, emoji: string, reactions: readonly MarkedReaction[], reader: Reader): object {
  const users = reactions.filter(({ reactor }) => reactor.type === 'user');
  const agents = reactions.filter(({ reactor }) => reactor.type === 'agent');
  const isReader = ({ reactor }: MarkedReaction) => reactor.id === reader.userId;
  const named = [...users.filter((one) => !isReader(one)), ...agents];
  const target = reactions[0]?.target;
  return {
    interaction_id: id,
    emoji,
    count: reactions.length,
    reacted_by_me: users.some(isReader),
    target_role: target?.role,
    reacted_by_agent: agents.length > 0,
    reactor_names: named.flatMap(({ reactor }) => (reactor.name ? [reactor.name] : [])),
    target_sender_id: target?.senderId ?? null,
    ...(reader.namesReactors === true && {
      reactors: reactions.map(({ reactor: { type, id: reactorId, name }, order: sequence }) => ({
        type,
        id: reactorId,
        name,
        sequence,
      })),
    }),
  };
}

/** A read receipt as the API returns it (contract, section 2.12). */
export function receiptResource(
  messageId: EntityId,
  { id, agentId, readAt, turnId }: Omit<MarkedReceipt, 'order'>,
): object {
  return { id, message_event_id: messageId, interaction_id: turnId, agent_id: agentId, read_at: readAt };
}
