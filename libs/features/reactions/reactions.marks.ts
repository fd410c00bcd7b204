/*
 * A mark is what is stored of a reaction, a receipt or a dismissal: one member of a sorted set, which says
 * all that a read needs, so that reads take one range and nothing else.
 */
import { z } from 'zod';

import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import { sequenceOf } from '#libs/kernel/event.ts';

import type { StandingReaction } from './reaction.decider.ts';
import type { Reaction, ReactionEvent } from './reaction.events.ts';

const reactionMark = z.tuple([
  z.literal('reaction'),
  // The sequence of the event that added it: the order of reacting.
  z.int(),
  z.string(),
  z.enum(['user', 'agent']),
  z.string(),
  z.string().nullable(),
  z.enum(['user', 'assistant']),
  z.string().nullable(),
]);
const receiptMark = z.tuple([z.literal('receipt'), z.int(), z.string(), z.string(), z.string(), z.string()]);
// With the sequence of its interaction: a member stands only once in the set, whatever its score.
const dismissalMark = z.tuple([z.literal('dismissal'), z.int(), z.string()]);
const mark = z.union([reactionMark, receiptMark, dismissalMark]);

/** A reaction that stands, with its place in the order of reacting. */
export interface MarkedReaction extends Omit<Reaction, 'sequence'> {
  readonly order: number;
}

export interface MarkedReceipt {
  readonly order: number;
  readonly id: string;
  readonly agentId: string;
  readonly readAt: string;
  readonly turnId: string;
}

/** All that was added to one interaction. */
export interface Marks {
  readonly reactions: readonly MarkedReaction[];
  readonly receipts: readonly MarkedReceipt[];
  /** Users who have dismissed the mention-invite prompt. */
  readonly dismissedBy: readonly string[];
}

/** @param addedAt sequence of the event that added it */
export function encodeReaction({ emoji, reactor, target }: Omit<Reaction, 'sequence'>, addedAt: number): string {
  const { type, id, name } = reactor;
  const value: z.infer<typeof reactionMark> = [
    'reaction',
    addedAt,
    emoji,
    type,
    id,
    name,
    target.role,
    target.senderId,
  ];
  return JSON.stringify(value);
}

export function encodeReceipt(event: StreamEvent<Extract<ReactionEvent, { type: 'ReadReceiptRecorded.v1' }>>): string {
  const { agentId, turnId } = event.data;
  const value: z.infer<typeof receiptMark> = [
    'receipt',
    sequenceOf(event.revision),
    event.id,
    agentId,
    event.metadata.at,
    turnId,
  ];
  return JSON.stringify(value);
}

export function encodeDismissal(sequence: number, userId: string): string {
  const value: z.infer<typeof dismissalMark> = ['dismissal', sequence, userId];
  return JSON.stringify(value);
}

/** What members of the sorted set say of one interaction, each kind in the order of its events. */
export function decodeMarks(members: readonly string[]): Marks {
  const reactions: MarkedReaction[] = [];
  const receipts: MarkedReceipt[] = [];
  const dismissedBy: string[] = [];
  for (const member of members) {
    const found = mark.parse(JSON.parse(member));
    if (found[0] === 'reaction') {
      const [, order, emoji, type, id, name, role, senderId] = found;
      reactions.push({ order, emoji, reactor: { type, id, name }, target: { role, senderId } });
    } else if (found[0] === 'receipt') {
      const [, order, id, agentId, readAt, turnId] = found;
      receipts.push({ order, id, agentId, readAt, turnId });
    } else {
      dismissedBy.push(found[2]);
    }
  }
  const inOrder = (a: { readonly order: number }, b: { readonly order: number }) => a.order - b.order;
  return { reactions: reactions.sort(inOrder), receipts: receipts.sort(inOrder), dismissedBy };
}

const standing = z.tuple([z.int(), z.string().nullable()]);

/** What a command wants to know of a reaction: whether it stands, and what to remove if it does. */
export function encodeStanding({ addedAt, name }: StandingReaction): string {
  return JSON.stringify([addedAt, name]);
}

export function decodeStanding(stored: string): StandingReaction {
  const [addedAt, name] = standing.parse(JSON.parse(stored));
  return { addedAt: addedAt as ChannelSequence, name };
}
