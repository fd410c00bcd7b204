/*
 * A mark is the stored form of a reaction, a receipt or a dismissal: a member of a sorted set that contains everything a
 * read needs, so that a read is one range.
 */
import { z } from 'zod';

import { sequenceOf, type ChannelSequence, type StreamEvent } from '#libs/kernel/event.ts';

import type { CurrentReaction, Reaction, ReactionEvent, Reactor } from './reaction.ts';

export function reactionField(sequence: number, { type, id }: Omit<Reactor, 'name'>, emoji: string): string {
  return `${sequence} ${type} ${id} ${emoji}`;
}

export function receiptField(sequence: number, agentId: string): string {
  return `${sequence} receipt ${agentId}`;
}

export function dismissalField(sequence: number): string {
  return `${sequence} dismissal`;
}

/**
 * Field in the hash of the interactions: set by the first mark of an interaction, and never deleted. There, because reads
 * of an interaction and of this field are one command.
 */
export function markedField(sequence: number): string {
  return `${sequence}m`;
}

type ReactionMark = readonly [
  kind: 'reaction',
  /** The sequence of the event that added it, by which reactions are sorted. */
  order: number,
  emoji: string,
  reactorType: Reactor['type'],
  reactorId: string,
  reactorName: string | null,
  targetRole: Reaction['target']['role'],
  targetSenderId: string | null,
];
type ReceiptMark = readonly [
  kind: 'receipt',
  order: number,
  id: string,
  agentId: string,
  readAt: string,
  turnId: string,
];
type DismissalMark = readonly [kind: 'dismissal', order: number, userId: string];
type Mark = ReactionMark | ReceiptMark | DismissalMark;
type WithdrawnMark = readonly [withdrawnSequence: number, mark: ReactionMark];

/** A reaction; `order` is the sequence of the event that added it. */
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

export interface Marks {
  readonly reactions: readonly MarkedReaction[];
  readonly receipts: readonly MarkedReceipt[];
  /** Ids of the users that dismissed the mention-invite prompt. */
  readonly dismissedBy: readonly string[];
}

export function encodeReaction(reaction: Omit<Reaction, 'sequence'>, addedSequence: number): string {
  return JSON.stringify(reactionMarkOf(reaction, addedSequence));
}

export function encodeWithdrawn(
  reaction: Omit<Reaction, 'sequence'>,
  { addedSequence, withdrawnSequence }: { readonly addedSequence: number; readonly withdrawnSequence: number },
): string {
  const mark = reactionMarkOf(reaction, addedSequence);
  return JSON.stringify([withdrawnSequence, mark] satisfies WithdrawnMark);
}

function reactionMarkOf({ emoji, reactor, target }: Omit<Reaction, 'sequence'>, addedSequence: number): ReactionMark {
  return ['reaction', addedSequence, emoji, reactor.type, reactor.id, reactor.name, target.role, target.senderId];
}

export function encodeReceipt(event: StreamEvent<Extract<ReactionEvent, { type: 'ReadReceiptRecorded.v1' }>>): string {
  const { id, revision, metadata, data } = event;
  const mark = ['receipt', sequenceOf(revision), id, data.agentId, metadata.at, data.turnId] as const;
  return JSON.stringify(mark satisfies ReceiptMark);
}

export function encodeDismissal(userId: string, dismissedSequence: number): string {
  return JSON.stringify(['dismissal', dismissedSequence, userId] satisfies DismissalMark);
}

/**
 * The marks of one interaction before the event of the sequence `end`, each kind in the order of its events.
 *
 * @param current members of the set of marks
 * @param withdrawn members of the set of removed reactions. It is read after the other set, so a reaction that is removed
 *   between the two reads is in both.
 */
export function marksBefore(end: number, current: readonly string[], withdrawn: readonly string[] = []): Marks {
  const reactions = new Map<number, MarkedReaction>();
  const receipts: MarkedReceipt[] = [];
  const dismissedBy: string[] = [];
  for (const found of parsedMarks(current)) {
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
    // As in `parsedMarks`.
    const [withdrawnSequence, found] = JSON.parse(member) as WithdrawnMark;
    if (found[1] < end && end <= withdrawnSequence) reactions.set(found[1], markedReaction(found));
  }
  const inOrder = (a: { readonly order: number }, b: { readonly order: number }) => a.order - b.order;
  return { reactions: [...reactions.values()].sort(inOrder), receipts: receipts.sort(inOrder), dismissedBy };
}

/**
 * The projection has written them, under keys with the version of their shape. A page may have 50,000 marks, and to
 * validate one takes four times as long as to parse it. All at once, because a call takes longer than a mark.
 */
function parsedMarks(members: readonly string[]): Mark[] {
  return JSON.parse(`[${members.join(',')}]`) as Mark[];
}

function markedReaction([, order, emoji, type, id, name, role, senderId]: ReactionMark): MarkedReaction {
  return { order, emoji, reactor: { type, id, name }, target: { role, senderId } };
}

const currentReaction = z.tuple([z.int(), z.string().nullable()]);

/** The value of {@link reactionField}, from which a command removes the reaction. */
export function encodeCurrent({ addedSequence, name }: CurrentReaction): string {
  return JSON.stringify([addedSequence, name]);
}

export function decodeCurrent(stored: string): CurrentReaction {
  const [addedSequence, name] = currentReaction.parse(JSON.parse(stored));
  return { addedSequence: addedSequence as ChannelSequence, name };
}
