/** Events of interactions, as sockets and event streams show them, and Kafka for other teams. */
import { z } from 'zod';

import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { FRAME_FLAG, type EventContent, type EventDescription, representedBy } from '#libs/platform/live/index.ts';

import {
  type ChangeEvent,
  type Interaction,
  type InteractionEvent,
  isSuperseding,
  posted,
  superseded,
} from './interaction.events.ts';
import type { InteractionsState } from './interaction.ts';
import { contentItem } from './interaction.content.ts';
import { interactionId } from './interaction.id.ts';
import { interactionSchema } from './interaction.schemas.ts';
import { changedOpen } from './open-interaction.ts';
import { changedJson, type Owner, postedJson, supersededJson } from './reads/resource.ts';

const TYPES = {
  'InteractionPosted.v1': 'interaction.posted',
  'InteractionContentAppended.v1': 'interaction.updated',
  'InteractionCompleted.v2': 'interaction.completed',
  'InteractionFailed.v1': 'interaction.failed',
  'InteractionEdited.v1': 'interaction.edited',
  'InteractionDeleted.v1': 'interaction.deleted',
} as const satisfies Record<InteractionEvent['type'], string>;

/** The frame of an event: the interaction after it, without annotations. */
export function interactionFrame(
  event: StreamEvent<InteractionEvent>,
  before: InteractionsState,
  owner: Owner,
): EventContent {
  const type = TYPES[event.type];
  if (event.type === 'InteractionPosted.v1') {
    return { type, json: postedJson(event, owner), flags: flagsOf(posted(event)), onBehalfOf: senderOf(event) };
  }
  if (isSuperseding(event)) {
    const erases = event.type === 'InteractionDeleted.v1' ? FRAME_FLAG.erases : 0;
    return { type, json: supersededJson(event, owner), flags: flagsOf(superseded(event)) | erases };
  }
  const open = before.open[event.data.sequence];
  // As in the fold: an event about a complete interaction changes nothing.
  if (open === undefined) return { type, json: 'null' };
  const after = changedOpen(open, event);
  return {
    type,
    json: changedJson(after, event, owner),
    flags: flagsOf(after) | (after.complete ? FRAME_FLAG.endsText : 0),
  };
}

/** The sender, if it is an identity that another principal has posted for. */
function senderOf({ data, metadata }: Extract<StreamEvent<InteractionEvent>, { type: 'InteractionPosted.v1' }>) {
  const { type, user_id: userId, agent_id: agentId } = data.participant as ParticipantIds;
  if (type === 'authenticated_user' && userId !== undefined) {
    return representedBy(metadata.actor, { type: 'user', id: userId });
  }
  return type === 'agent' && agentId !== undefined
    ? representedBy(metadata.actor, { type: 'agent', id: agentId })
    : null;
}

interface ParticipantIds {
  readonly type: string;
  readonly user_id?: string;
  readonly agent_id?: string;
}

function flagsOf({ parentSpanId, complete }: Pick<Interaction, 'parentSpanId' | 'complete'>): number {
  return (parentSpanId === null ? 0 : FRAME_FLAG.nested) | (complete ? 0 : FRAME_FLAG.incomplete);
}

const data = interactionSchema.nullable();

/** The types of frames. Their data are null for subscribers that did not opt in to such interactions. */
export const interactionEventTypes: readonly EventDescription[] = [
  { type: 'interaction.posted', summary: 'An interaction was posted, complete or not', data },
  { type: 'interaction.updated', summary: 'Content was appended to an incomplete interaction', data },
  { type: 'interaction.completed', summary: 'An incomplete interaction was completed', data },
  { type: 'interaction.failed', summary: 'An incomplete interaction failed; `metadata.failure` is the reason', data },
  { type: 'interaction.edited', summary: 'The sender replaced the content of an interaction', data },
  {
    type: 'interaction.deleted',
    summary: 'The sender deleted an interaction, whose content is empty now; earlier events of it have null as data',
    data,
  },
];

/* WARNING: other teams read these messages from Kafka. Members may be added; existing ones keep name and meaning. */

const identity = { id: z.string().describe('Id of the interaction'), channel_id: z.string() };
const content = z.array(contentItem);
const added = z.object({ ...identity, content: content.describe('The appended content') }).meta({ id: 'AddedContent' });
const completed = z
  .object({
    ...identity,
    content: content.nullable().describe('The new content, or null if it did not change'),
    metadata: interactionSchema.shape.metadata.describe('The new metadata, or null if they did not change'),
    invocation_config: interactionSchema.shape.invocation_config.describe(
      'The new configuration, or null if it did not change',
    ),
  })
  .meta({ id: 'CompletedInteraction' });
const failed = z.object({ ...identity, reason: z.string() }).meta({ id: 'FailedInteraction' });

export const interactionMessageTypes: readonly EventDescription[] = [
  {
    type: 'interaction.posted',
    summary: 'An interaction was posted; `complete` is false if it is still in progress',
    data: interactionSchema,
  },
  { type: 'interaction.updated', summary: 'Content was appended to an incomplete interaction', data: added },
  { type: 'interaction.completed', summary: 'An incomplete interaction was completed', data: completed },
  { type: 'interaction.failed', summary: 'An incomplete interaction failed', data: failed },
  { type: 'interaction.edited', summary: 'The interaction with the new content', data: interactionSchema },
  {
    type: 'interaction.deleted',
    summary: 'The interaction without its content: delete copies of it',
    data: interactionSchema,
  },
];

/** The message of an event: only what the event itself states. */
export function interactionMessage(event: StreamEvent<InteractionEvent>, channelId: EntityId): EventContent {
  const type = TYPES[event.type];
  if (event.type === 'InteractionPosted.v1') {
    const { organizationId } = event.metadata;
    return { type, json: postedJson(event, { organizationId, channelId }), onBehalfOf: senderOf(event) };
  }
  if (isSuperseding(event)) {
    const { organizationId } = event.metadata;
    return { type, json: supersededJson(event, { organizationId, channelId }) };
  }
  const id = interactionId({ channelId, sequence: event.data.sequence as ChannelSequence });
  return { type, json: JSON.stringify({ id, channel_id: channelId, ...publicData(event) }) };
}

function publicData(event: ChangeEvent): object {
  switch (event.type) {
    case 'InteractionContentAppended.v1':
      return { content: event.data.content };
    case 'InteractionCompleted.v2': {
      const { content, metadata, invocationConfig } = event.data;
      return { content, metadata, invocation_config: invocationConfig };
    }
    case 'InteractionFailed.v1':
      return { reason: event.data.reason };
    default:
      return unreachable(event);
  }
}
