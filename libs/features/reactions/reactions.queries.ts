import { interactionId } from '#libs/features/interactions/index.ts';
import type { Annotation, Annotations, Reader } from '#libs/features/interactions/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CollectionReader } from '#libs/platform/readmodel/index.ts';

import { markedField, reactionKeys } from './reactions.keys.ts';
import { marksBefore } from './reactions.marks.ts';
import type { MarkedReaction, MarkedReceipt, Marks } from './reactions.marks.ts';

const NOTHING: ReadonlyMap<number, Annotation> = new Map();

/** What reactions, receipts and dismissals add to interactions, for whoever reads them. */
export class ReactionAnnotations implements Annotations {
  readonly #collections: CollectionReader;

  constructor(collections: CollectionReader) {
    this.#collections = collections;
  }

  async of(
    organizationId: EntityId,
    channelId: EntityId,
    sequences: readonly number[],
    reader: Reader,
    end: number,
  ): Promise<ReadonlyMap<number, Annotation>> {
    const { marks, withdrawn, known } = reactionKeys(organizationId, channelId);
    if (sequences.length === 1) {
      // Most have nothing, and that is known with what is asked for of others in the same turn.
      const [marked] = await this.#collections.fields(known, [markedField(sequences[0] ?? 0)]);
      if (!marked) return NOTHING;
    }
    const [standing, gone] = await Promise.all([
      this.#collections.withScores(marks, sequences),
      // After the marks: what is taken back between the two is in both, not in none.
      end === Infinity ? new Map<number, string[]>() : this.#collections.withScores(withdrawn, sequences),
    ]);
    const annotations = new Map<number, Annotation>();
    for (const sequence of new Set([...standing.keys(), ...gone.keys()])) {
      const found = marksBefore(end, standing.get(sequence) ?? [], gone.get(sequence));
      const id = interactionId({ channelId, sequence: sequence as ChannelSequence });
      annotations.set(sequence, annotationOf(id, found, reader));
    }
    return annotations;
  }
}

/** The contract's members (section 2.12) of one interaction, as `reader` sees them. */
export function annotationOf(id: EntityId, marks: Marks, reader: Reader): Annotation {
  const byEmoji = Map.groupBy(marks.reactions, ({ emoji }) => emoji);
  return {
    reactions: byEmoji.size === 0 ? null : [...byEmoji].map(([emoji, of]) => summaryOf(id, emoji, of, reader)),
    mention_invite_prompt_dismissed: reader.userId !== null && marks.dismissedBy.includes(reader.userId),
    agent_read_receipts: marks.receipts.length === 0 ? null : marks.receipts.map((one) => receiptResource(id, one)),
  };
}

/** @param reactions those with one emoji, in the order of reacting; at least one */
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
  };
}

/** A read receipt as the API answers it (contract, section 2.12). */
export function receiptResource(
  messageId: EntityId,
  { id, agentId, readAt, turnId }: Omit<MarkedReceipt, 'order'>,
): object {
  return { id, message_event_id: messageId, interaction_id: turnId, agent_id: agentId, read_at: readAt };
}
