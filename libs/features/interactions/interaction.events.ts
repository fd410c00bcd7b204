/*
 * These names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, the old one moves to interaction.events.history.ts
 * with an upcaster.
 *
 * Interactions are events of their channel's stream, `channel-<id>`, so that one sequence orders all that
 * happens there. An interaction's own id is its place: see interaction.id.ts.
 */
import { z } from 'zod';

import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

import { contentRole } from './interaction.content.ts';

/*
 * Content, participants and configuration are stored as the contract names them. They were checked in full
 * when they came in; here only what folds rely on is, because every event of the log passes through it.
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
    /** The user turn that it belongs to; `interaction_id` in the API. */
    turnId: z.string().nullable(),
    spanId: z.string(),
    parentSpanId: z.string().nullable(),
    /** Distance from the root of its tree, which is at 1. */
    depth: z.int().positive(),
    organizationApplication: z.string().nullable(),
  }),
  'InteractionContentAppended.v1': z.object({ sequence: z.int().positive(), content }),
  /** `content` replaces what was there; null leaves it. */
  'InteractionCompleted.v1': z.object({ sequence: z.int().positive(), content: content.nullable() }),
  'InteractionFailed.v1': z.object({ sequence: z.int().positive(), reason: z.string() }),
});

export type InteractionEvent = EventOf<typeof interactionCodec>;
export type InteractionPosted = Extract<InteractionEvent, { type: 'InteractionPosted.v1' }>['data'];
export type StoredContent = z.infer<typeof content>;
