import { CHANNEL } from '#libs/features/channels/index.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import type { Projection, WriteOperation } from '#libs/platform/readmodel/index.ts';

import { reactionCodec } from './reaction.events.ts';
import type { ReactionEvent } from './reaction.events.ts';
import { dismissalField, markedField, reactionField, reactionKeysOf, receiptField } from './reactions.keys.ts';
import type { ReactionKeys } from './reactions.keys.ts';
import { encodeDismissal, encodeReaction, encodeReceipt, encodeStanding, encodeWithdrawn } from './reactions.marks.ts';

/**
 * The part of a channel's projection that is about reactions, receipts and dismissals. No state: every event
 * says all that it writes, and all of it gathers without bound.
 */
export const reactionsProjection: Projection<null, ReactionEvent> = {
  category: CHANNEL,
  codec: reactionCodec,
  fold: { initialState: null, evolve: (state) => state },
  project({ events }, channelKeys) {
    const keys = reactionKeysOf(channelKeys);
    return { operations: events.flatMap((event) => writesOf(event, keys)), lists: [] };
  },
};

function writesOf(event: StreamEvent<ReactionEvent>, keys: ReactionKeys): WriteOperation[] {
  const { sequence } = event.data;
  switch (event.type) {
    case 'ReactionAdded.v1': {
      const { reactor, emoji } = event.data;
      const addedAt = sequenceOf(event.revision);
      const known = encodeStanding({ addedAt, name: reactor.name });
      return mark(keys, sequence, encodeReaction(event.data, addedAt), reactionField(sequence, reactor, emoji), known);
    }
    case 'ReactionRemoved.v1': {
      const { reactor, emoji, addedAt } = event.data;
      const withdrawn = encodeWithdrawn(event.data, { addedAt, withdrawnAt: sequenceOf(event.revision) });
      return [
        { command: 'ZREM', key: keys.marks, args: [encodeReaction(event.data, addedAt)] },
        { command: 'ZADD', key: keys.withdrawn, args: [sequence, withdrawn] },
        { command: 'HDEL', key: keys.known, args: [reactionField(sequence, reactor, emoji)] },
      ];
    }
    case 'ReadReceiptRecorded.v1':
      return mark(keys, sequence, encodeReceipt(event), receiptField(sequence, event.data.agentId));
    case 'MentionInvitePromptDismissed.v1':
      return mark(
        keys,
        sequence,
        encodeDismissal(event.data.userId, sequenceOf(event.revision)),
        dismissalField(sequence),
      );
  }
}

function mark(keys: ReactionKeys, sequence: number, member: string, field: string, known = '1'): WriteOperation[] {
  return [
    { command: 'ZADD', key: keys.marks, args: [sequence, member] },
    { command: 'HSET', key: keys.known, args: [field, known, markedField(sequence), '1'] },
  ];
}
