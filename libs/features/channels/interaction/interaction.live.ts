/** Interactions on sockets and event streams, and in Kafka for other teams. */
import { z } from 'zod';

import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { liveCommand, type LiveCommandType } from '#libs/platform/http/index.ts';
import { FRAME_FLAG, publicEvents, type EventContent, type EventDescription } from '#libs/platform/live/index.ts';
import type { ProjectedEvent } from '#libs/platform/readmodel/index.ts';

import {
  type ChangeEvent,
  type Interaction,
  interactionCodec,
  type InteractionEvent,
  posted,
} from './interaction.events.ts';
import type { InteractionsState } from './interaction.ts';
import type { InteractionCommands } from './interaction.commands.ts';
import { contentItem } from './interaction.content.ts';
import { interactionId } from './interaction.id.ts';
import { interactionError, interactionToPost, type InteractionDirectory } from './interaction.requests.ts';
import { interactionSchema, postInteractionBody } from './interaction.schemas.ts';
import { changedOpen } from './open-interaction.ts';
import { openJson, postedJson } from './reads/resource.ts';

const TYPES = {
  'InteractionPosted.v1': 'interaction.posted',
  'InteractionContentAppended.v1': 'interaction.updated',
  'InteractionCompleted.v2': 'interaction.completed',
  'InteractionFailed.v1': 'interaction.failed',
} as const satisfies Record<InteractionEvent['type'], string>;

/** The frame of an event: the interaction after it, without annotations. */
export function interactionFrame(one: ProjectedEvent<InteractionsState, InteractionEvent>): EventContent {
  const { organizationId, id: channelId, before, event } = one;
  const owner = { organizationId, channelId };
  const type = TYPES[event.type];
  if (event.type === 'InteractionPosted.v1') {
    return { type, json: postedJson(event, owner), flags: flagsOf(posted(event)) };
  }
  const open = before.open[event.data.sequence];
  // As in the fold: an event about a complete interaction changes nothing.
  if (open === undefined) return { type, json: 'null' };
  const after = changedOpen(open, event);
  return { type, json: openJson(after, owner), flags: flagsOf(after) };
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
];

/** The commands of sockets: the same as `POST /api/v1/channels/{id}/interactions`. */
export function interactionLiveCommands({
  commands,
  directory,
}: {
  readonly commands: InteractionCommands;
  readonly directory: InteractionDirectory;
}): readonly LiveCommandType[] {
  return [
    liveCommand({
      type: 'interaction.post',
      summary: 'Post an interaction, complete or to be completed later',
      data: postInteractionBody,
      isDurable: true,
      async run({ context, principal: writer, channelId, data }) {
        const post = await interactionToPost(context, data, { directory, writer });
        const result = await commands.submit(context, channelId, post);
        if (!result.ok) throw interactionError(result.rejection, { channelId, body: data });
        return post.update === null ? result.revision : null;
      },
    }),
  ];
}

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

const described: readonly EventDescription[] = [
  {
    type: 'interaction.posted',
    summary: 'An interaction was posted; `complete` is false if it is still in progress',
    data: interactionSchema,
  },
  { type: 'interaction.updated', summary: 'Content was appended to an incomplete interaction', data: added },
  { type: 'interaction.completed', summary: 'An incomplete interaction was completed', data: completed },
  { type: 'interaction.failed', summary: 'An incomplete interaction failed', data: failed },
];

/** Messages contain only what the event itself states. */
export const publicInteractionEvents = publicEvents({ codec: interactionCodec, described, publish });

function publish(event: StreamEvent<InteractionEvent>, channelId: EntityId): EventContent {
  const type = TYPES[event.type];
  if (event.type === 'InteractionPosted.v1') {
    const { organizationId } = event.metadata;
    return { type, json: postedJson(event, { organizationId, channelId }) };
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
