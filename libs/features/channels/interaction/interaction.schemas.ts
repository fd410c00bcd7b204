/*
 * The HTTP schemas of interactions: the contract's sections 2.12 and 4.14, field by field.
 */
import { z } from 'zod';

import {
  idParam,
  givenId,
  jsonMap,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  queryInteger,
  queryPointInHistory,
  text,
  timestamp,
  shownTime,
} from '#libs/platform/http/index.ts';

import { contentItem, contentRole, interactionParticipant, invocationConfig } from './interaction.content.ts';

const reactionSummary = z
  .object({
    interaction_id: z.string(),
    emoji: z.string(),
    count: z.int(),
    reacted_by_me: z.boolean(),
    target_role: z.enum(['user', 'assistant']).meta({ id: 'ReactionTargetRole' }),
    reacted_by_agent: z.boolean().default(false),
    reactor_names: z.array(z.string()).default([]),
    target_sender_id: z.string().nullable(),
    reactors: z
      .array(
        z
          .object({
            type: z.enum(['user', 'agent']),
            id: z.string(),
            name: z.string().nullable(),
            sequence: z.int().describe('Of the event that added the reaction, which orders them'),
          })
          .meta({ id: 'Reactor' }),
      )
      .optional()
      .describe('Present on request: what the other members are computed from'),
  })
  .meta({ id: 'ReactionSummary' });

export const readReceiptSchema = z
  .object({
    id: z.string(),
    message_event_id: z.string(),
    interaction_id: z.string(),
    agent_id: z.string(),
    read_at: shownTime(),
  })
  .meta({ id: 'AgentReadReceipt' });

const members = {
  id: z.string(),
  created_at: shownTime(),
  channel_id: z.string(),
  participant: interactionParticipant,
  content: z.array(contentItem),
  content_role: contentRole,
  complete: z.boolean(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  invocation_config: invocationConfig.nullable(),
  interaction_id: z.string().nullable().describe('Id of the user turn'),
  sequence: z.int().nullable().describe('Position among all events of the channel, from 1'),
  span_id: z.string().nullable(),
  parent_span_id: z.string().nullable(),
  organization_id: z.string().nullable(),
  organization_application: z.string().nullable(),
  reactions: z.array(reactionSummary).nullable(),
  mention_invite_prompt_dismissed: z.boolean().default(false),
  agent_read_receipts: z.array(readReceiptSchema).nullable(),
  edited_at: shownTime().optional().describe('Absent if the content was not edited'),
  deleted_at: shownTime().optional().describe('Absent if it was not deleted; otherwise the content is empty'),
};

export const interactionSchema = z
  .object({
    ...members,
    get nested_interactions(): z.ZodOptional<z.ZodNullable<z.ZodArray<z.ZodType<object>>>> {
      return z
        .array(interactionSchema)
        .nullish()
        .describe('Present on request: all descendants, ordered by sequence. Null in each of them');
    },
  })
  .meta({ id: 'Interaction' });

export const interactionPageSchema = z
  .object({
    items: z.array(interactionSchema),
    meta: pageMetaSchema
      .extend({
        sequence: z
          .int()
          .describe(
            'Sequence of the channel that the page reflects: it includes every event up to it and none after it, so a subscription after it misses nothing and repeats nothing',
          ),
        oldest_incomplete: z
          .string()
          .optional()
          .describe('Id of the incomplete interaction that the list ends before; absent if there is none'),
      })
      .meta({ id: 'InteractionPageMeta' }),
  })
  .meta({ id: 'InteractionPage' });

const MAX_CONTENT_ITEMS = 500;
const content = z.array(contentItem).max(MAX_CONTENT_ITEMS);

export const postInteractionBody = z
  .object({
    content,
    content_role: contentRole.optional().describe('Default: depends on the type of the sender'),
    participant: interactionParticipant
      .optional()
      .describe(
        "The sender. Default: the caller, where a service is an `external_agent`. Another user or `system`, and with a user's key also an agent, requires the scope `impersonate`",
      ),
    complete: z.boolean().default(true),
    metadata: jsonMap().nullish(),
    invocation_config: invocationConfig.nullish(),
    interaction_id: givenId({
      description: 'Id of the user turn. Default: the turn of the parent, or a new one',
    }).nullish(),
    span_id: givenId({ description: 'Must be unique in the channel. Default: generated' }).nullish(),
    parent_span_id: givenId({ description: 'Span of the parent interaction, in the same channel' }).nullish(),
  })
  .meta({ id: 'InteractionPost', examples: [{ content: [{ type: 'text', text: 'Where is my order?' }] }] });
/** As writers give it: without the members that have a default. */
export type PostInteractionBody = z.input<typeof postInteractionBody>;

export const appendContentBody = z.object({ content }).meta({
  id: 'InteractionContentAppend',
  examples: [{ content: [{ type: 'text', text: 'It has left the warehouse.' }] }],
});

export const completeInteractionBody = z
  .object({ content: content.nullish().describe('Replaces the content') })
  .meta({ id: 'InteractionCompletion', examples: [{ content: [{ type: 'text', text: 'It arrives tomorrow.' }] }] });

export const editInteractionBody = z
  .object({ content: content.describe('Replaces the content') })
  .meta({ id: 'InteractionEdit', examples: [{ content: [{ type: 'text', text: 'Where is my order 4711?' }] }] });

export const failInteractionBody = z
  .object({ reason: text({ max: 4_096 }).default('') })
  .meta({ id: 'InteractionFailure', examples: [{ reason: 'The model does not answer' }] });

export const writeDeltaBody = z
  .object({
    offset: z
      .int()
      .min(0)
      .nullish()
      .describe('Expected length of the draft in UTF-16 code units, else 409. Without it, `text` replaces the draft'),
    text: text({ description: 'Text to append' }),
  })
  .meta({ id: 'InteractionDelta', examples: [{ offset: 0, text: 'It arrives' }] });

export const draftSchema = z
  .object({ interaction_id: z.string(), length: z.int().describe('UTF-16 code units of the draft: the next offset') })
  .meta({ id: 'InteractionDraft' });

export const channelParams = z.object({ id: idParam('Id of the channel') });

export const interactionParams = z.object({ interaction_id: idParam('Id of the interaction') });

const includeToolCallUpdates = (where: string) =>
  queryBoolean({ default: false, description: `Also returns the last update of each running tool call, ${where}` });

const includeIncomplete = queryBoolean({ default: false, description: 'Also returns incomplete interactions' });

const asOf = queryPointInHistory({
  description: 'Reads the state as of this sequence of the channel (0: before its first event) or time',
}).optional();

export const readInteractionQuery = z.object({
  include_nested_interactions: queryBoolean({
    default: false,
    description: 'Also returns its descendants as `nested_interactions`, ordered by sequence; null in each of them',
  }),
  include_incomplete: includeIncomplete,
  include_tool_call_updates: includeToolCallUpdates(
    'after the descendants: updates of its turn, and updates whose parent is returned',
  ),
  as_of: asOf,
});

export const listInteractionsQuery = z.object({
  ...pageQuery,
  order: z
    .enum(['asc', 'desc'])
    .default('desc')
    .describe(
      'By sequence; `desc`: newest first. With `asc`, `after_sequence` or `created_after`, a list of complete interactions ' +
        'ends before the oldest incomplete one that matches: a later list after the last sequence misses nothing',
    ),
  after_sequence: queryInteger({ min: 0, description: 'Only interactions with a higher sequence' }).optional(),
  before_sequence: queryInteger({ min: 0, description: 'Only interactions with a lower sequence' }).optional(),
  created_after: timestamp({ description: 'Only interactions created after this time, to the millisecond' }).optional(),
  created_before: timestamp({
    description: 'Only interactions created before this time, to the millisecond',
  }).optional(),
  content_role: contentRole.optional(),
  interaction_id: givenId({ description: 'Only interactions of this user turn' }).optional(),
  include_incomplete: includeIncomplete,
  include_tool_call_updates: includeToolCallUpdates('after the newest interactions; not counted in `size` and `total`'),
  include_reactors: queryBoolean({
    default: false,
    description: 'Reactions also have `reactors`, so that a client can apply the live events of later reactions',
  }),
  as_of: asOf,
});
