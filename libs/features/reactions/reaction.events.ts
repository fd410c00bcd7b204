/*
 * These names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, the old one moves to reaction.events.history.ts
 * with an upcaster.
 *
 * What is added to an interaction after it was posted: events of its channel's stream. `sequence` is that of
 * the interaction. Names are those at the time of reacting.
 */
import { z } from 'zod';

import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

const sequence = z.int().positive();

const reaction = z.object({
  sequence,
  emoji: z.string(),
  reactor: z.object({ type: z.enum(['user', 'agent']), id: z.string(), name: z.string().nullable() }),
  /** Who sent the interaction; no id for senders that have none. */
  target: z.object({ role: z.enum(['user', 'assistant']), senderId: z.string().nullable() }),
});

export const reactionCodec = defineEvents({
  'ReactionAdded.v1': reaction,
  /** The reaction that is no more, and the sequence of the event that had added it. */
  'ReactionRemoved.v1': reaction.extend({ addedAt: sequence }),
  /** `turnId` is the turn that the interaction belongs to. */
  'ReadReceiptRecorded.v1': z.object({ sequence, agentId: z.string(), turnId: z.string() }),
  'MentionInvitePromptDismissed.v1': z.object({ sequence, userId: z.string() }),
});

export type ReactionEvent = EventOf<typeof reactionCodec>;
export type Reaction = z.infer<typeof reaction>;
export type Reactor = Reaction['reactor'];
export type ReactionTarget = Reaction['target'];
