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
// After its order, as in the others, the user.
const dismissalMark = z.tuple([z.literal('dismissal'), z.int(), z.string()]);
const mark = z.union([reactionMark, receiptMark, dismissalMark]);
// The sequence of the event that took it back, and the mark that it was.
const withdrawnMark = z.tuple([z.int(), reactionMark]);

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
export function encodeReaction(reaction: Omit<Reaction, 'sequence'>, addedAt: number): string {
  return JSON.stringify(reactionMarkOf(reaction, addedAt));
}

/** @param withdrawnAt sequence of the event that took it back */
export function encodeWithdrawn(
  reaction: Omit<Reaction, 'sequence'>,
  { addedAt, withdrawnAt }: { readonly addedAt: number; readonly withdrawnAt: number },
): string {
  const value: z.infer<typeof withdrawnMark> = [withdrawnAt, reactionMarkOf(reaction, addedAt)];
  return JSON.stringify(value);
}

function reactionMarkOf(
  { emoji, reactor: { type, id, name }, target }: Omit<Reaction, 'sequence'>,
  addedAt: number,
): z.infer<typeof reactionMark> {
  return ['reaction', addedAt, emoji, type, id, name, target.role, target.senderId];
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

/** @param dismissedAt sequence of the event */
export function encodeDismissal(userId: string, dismissedAt: number): string {
  const value: z.infer<typeof dismissalMark> = ['dismissal', dismissedAt, userId];
  return JSON.stringify(value);
}

/**
 * What was added to one interaction before the event of the sequence `end`, each kind in the order of its events.
 *
 * @param stands members of the set of marks
 * @param withdrawn members of the set of reactions that were taken back; one may stand in both, where that was
 *   read later
 */
export function marksBefore(end: number, stands: readonly string[], withdrawn: readonly string[] = []): Marks {
  const reactions = new Map<number, MarkedReaction>();
  const receipts: MarkedReceipt[] = [];
  const dismissedBy: string[] = [];
  for (const member of stands) {
    const found = mark.parse(JSON.parse(member));
    if (found[1] >= end) continue;
    if (found[0] === 'reaction') {
      reactions.set(found[1], markedReaction(found));
    } else if (found[0] === 'receipt') {
      const [, order, id, agentId, readAt, turnId] = found;
      receipts.push({ order, id, agentId, readAt, turnId });
    } else {
      dismissedBy.push(found[2]);
    }
  }
  for (const member of withdrawn) {
    const [withdrawnAt, found] = withdrawnMark.parse(JSON.parse(member));
    if (found[1] < end && end <= withdrawnAt) reactions.set(found[1], markedReaction(found));
  }
  const inOrder = (a: { readonly order: number }, b: { readonly order: number }) => a.order - b.order;
  return { reactions: [...reactions.values()].sort(inOrder), receipts: receipts.sort(inOrder), dismissedBy };
}

function markedReaction([, order, emoji, type, id, name, role, senderId]: z.infer<
  typeof reactionMark
>): MarkedReaction {
  return { order, emoji, reactor: { type, id, name }, target: { role, senderId } };
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
