/*
 * WARNING: the names and shapes of events are the storage format: the log keeps them forever. Never change one in place.
 * A new version is a new type, and the old one gets an upcaster.
 *
 * Interactions are events of their channel's stream, `channel-<id>`, so that one sequence orders all events of a channel.
 */
import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { sequenceOf, type ChannelSequence, type StreamEvent } from '#libs/kernel/event.ts';
import { defineEvents, upcast, type EventOf } from '#libs/platform/eventstore/index.ts';

import { completeConfig, completeContent, completeParticipant, contentRole } from './interaction.content.ts';

/*
 * Content, participants and configuration are stored as the contract names them. Requests are checked in full; stored
 * events only for what folds rely on, because reads of the log check every event. Members that a stored part lacks are
 * added here, for everything that reads or folds events: by `overwrite`, because three transforms of zod would take longer
 * than the rest of an event's check.
 */
const typed = z.looseObject({ type: z.string() });
const jsonMap = z.record(z.string(), z.unknown());
const participant = typed.overwrite(completeParticipant);
const content = z.array(typed).overwrite(completeContent);
const invocationConfig = jsonMap.nullable().overwrite(completeConfig);

/** Frozen: events before version 2 have it. */
const completedV1 = z.object({ sequence: z.int().positive(), content: content.nullable() });

/** An interaction as an edit or a deletion leaves it: whole, so that it is written and shown without a look-up. */
const superseding = z.object({
  participant,
  content,
  contentRole,
  metadata: jsonMap.nullable(),
  invocationConfig,
  turnId: z.string().nullable(),
  spanId: z.string(),
  parentSpanId: z.string().nullable(),
  organizationApplication: z.string().nullable(),
  createdAt: z.string(),
});

const schemas = {
  'InteractionPosted.v1': z.object({
    participant,
    content,
    contentRole,
    complete: z.boolean(),
    metadata: jsonMap.nullable(),
    invocationConfig,
    /** Id of the user turn; `interaction_id` in the API. */
    turnId: z.string().nullable(),
    spanId: z.string(),
    parentSpanId: z.string().nullable(),
    /** Level in its tree; 1 for the root. */
    depth: z.int().positive(),
    organizationApplication: z.string().nullable(),
  }),
  'InteractionContentAppended.v1': z.object({ sequence: z.int().positive(), content }),
  /** Each member replaces the one so far; null keeps it. */
  'InteractionCompleted.v2': z.object({
    sequence: z.int().positive(),
    content: content.nullable(),
    metadata: jsonMap.nullable(),
    invocationConfig,
  }),
  'InteractionFailed.v1': z.object({ sequence: z.int().positive(), reason: z.string() }),
  /** The sender replaced the content of a complete interaction. */
  'InteractionEdited.v1': z.object({ sequence: z.int().positive(), interaction: superseding }),
  /** The sender deleted a complete interaction. Its content and metadata are empty here. */
  'InteractionDeleted.v1': z.object({ sequence: z.int().positive(), interaction: superseding }),
};

export const interactionCodec = defineEvents(schemas, {
  upcasters: {
    'InteractionCompleted.v1': upcast(completedV1, (data) => ({
      type: 'InteractionCompleted.v2',
      data: { ...data, metadata: null, invocationConfig: null },
    })),
  },
});

export type InteractionEvent = EventOf<typeof interactionCodec>;
export type PostedEvent = Extract<InteractionEvent, { type: 'InteractionPosted.v1' }>;
/** An edit or a deletion of a complete interaction. */
export type SupersedingEvent = Extract<InteractionEvent, { type: 'InteractionEdited.v1' | 'InteractionDeleted.v1' }>;
/** A change of an incomplete interaction. */
export type ChangeEvent = Exclude<InteractionEvent, PostedEvent | SupersedingEvent>;
export type SupersedingInteraction = SupersedingEvent['data']['interaction'];
export type InteractionPosted = PostedEvent['data'];
export type StoredContent = z.infer<typeof content>;
/** The members that a completion may replace besides the content. */
export type FinalDetails = Partial<Pick<InteractionPosted, 'metadata' | 'invocationConfig'>>;

/** An interaction folded from its events. */
export interface Interaction extends InteractionPosted {
  readonly sequence: ChannelSequence;
  readonly createdAt: Timestamp;
  readonly failure: string | null;
  /** Absent for an interaction that was not edited or deleted. */
  readonly editedAt?: Timestamp;
  readonly deletedAt?: Timestamp;
}

export function isSuperseding(event: StreamEvent): event is StreamEvent<SupersedingEvent> {
  return event.type === 'InteractionEdited.v1' || event.type === 'InteractionDeleted.v1';
}

/** The interaction as the event leaves it. */
export function superseded({ type, data, metadata }: StreamEvent<SupersedingEvent>): Omit<Interaction, 'depth'> {
  const at = type === 'InteractionEdited.v1' ? { editedAt: metadata.at } : { deletedAt: metadata.at };
  return { ...data.interaction, ...at, sequence: data.sequence as ChannelSequence, complete: true, failure: null };
}

export function posted(event: StreamEvent<PostedEvent>): Interaction {
  return { ...event.data, sequence: sequenceOf(event.revision), createdAt: event.metadata.at, failure: null };
}

export function changed(interaction: Interaction, event: ChangeEvent): Interaction {
  switch (event.type) {
    case 'InteractionContentAppended.v1':
      return { ...interaction, content: [...interaction.content, ...event.data.content] };
    case 'InteractionCompleted.v2':
      return {
        ...withDetails(interaction, event.data),
        content: event.data.content ?? interaction.content,
        complete: true,
      };
    case 'InteractionFailed.v1':
      return { ...interaction, complete: true, failure: event.data.reason };
  }
}

/** With the details that a completion replaces. */
export function withDetails<Of extends Pick<InteractionPosted, 'metadata' | 'invocationConfig'>>(
  before: Of,
  { metadata, invocationConfig }: FinalDetails,
): Of {
  return {
    ...before,
    metadata: metadata ?? before.metadata,
    invocationConfig: invocationConfig ?? before.invocationConfig,
  };
}
