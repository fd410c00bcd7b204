/*
 * WARNING: what other teams read from Kafka. Members may be added; what is there keeps its name and its meaning.
 */
import { z } from 'zod';

import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { publicEvents } from '#libs/platform/live/index.ts';
import type { EventDescription, PublicEvent } from '#libs/platform/live/index.ts';

import { contentItem } from './interaction.content.ts';
import { interactionCodec } from './interaction.events.ts';
import type { InteractionEvent } from './interaction.events.ts';
import { interactionId } from './interaction.id.ts';
import { postedJson } from './interactions.projection.ts';
import { interactionSchema } from './interactions.schemas.ts';

const place = { id: z.string().describe('Id of the interaction'), channel_id: z.string() };
const content = z.array(contentItem);
const added = z.object({ ...place, content: content.describe('What was added') }).meta({ id: 'AddedContent' });
const completed = z
  .object({ ...place, content: content.nullable().describe('All of its content, if it was replaced') })
  .meta({ id: 'CompletedInteraction' });
const failed = z.object({ ...place, reason: z.string() }).meta({ id: 'FailedInteraction' });

const described: readonly EventDescription[] = [
  {
    type: 'interaction.posted',
    summary: 'An interaction was posted; or begun, where `complete` is false',
    data: interactionSchema,
  },
  { type: 'interaction.updated', summary: 'Content was added to one that is not complete', data: added },
  { type: 'interaction.completed', summary: 'One that was begun is complete', data: completed },
  { type: 'interaction.failed', summary: 'One that was begun has failed', data: failed },
];

/** What other teams are told of interactions: of what each event says alone, without what came before it. */
export const publicInteractionEvents = publicEvents({ codec: interactionCodec, described, publish });

function publish(event: StreamEvent<InteractionEvent>, channelId: EntityId): PublicEvent {
  if (event.type === 'InteractionPosted.v1') {
    const { organizationId } = event.metadata;
    return { type: 'interaction.posted', json: postedJson(event, { organizationId, channelId }) };
  }
  const id = interactionId({ channelId, sequence: event.data.sequence as ChannelSequence });
  const { type, data } = told(event);
  return { type, json: JSON.stringify({ id, channel_id: channelId, ...data }) };
}

function told(event: Exclude<InteractionEvent, { type: 'InteractionPosted.v1' }>) {
  switch (event.type) {
    case 'InteractionContentAppended.v1':
      return { type: 'interaction.updated', data: { content: event.data.content } };
    case 'InteractionCompleted.v1':
      return { type: 'interaction.completed', data: { content: event.data.content } };
    case 'InteractionFailed.v1':
      return { type: 'interaction.failed', data: { reason: event.data.reason } };
    default:
      return unreachable(event);
  }
}
