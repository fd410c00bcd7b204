/*
 * Interactions as HTTP shows them: the contract's sections 2.12 and 4.14, field by field. The OpenAPI
 * document is made of these schemas.
 */
import { z } from 'zod';

import {
  idParam,
  idReference,
  jsonMap,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  queryInteger,
  queryPointInHistory,
  text,
  timestamp,
} from '#libs/platform/http/index.ts';

import { contentItem, contentRole, interactionParticipant, invocationConfig } from './interaction.content.ts';

const reactionSummary = z
  .object({
    interaction_id: z.string(),
    emoji: z.string(),
    count: z.int(),
    reacted_by_me: z.boolean(),
    target_role: z.enum(['user', 'assistant']),
    reacted_by_agent: z.boolean(),
    reactor_names: z.array(z.string()),
    target_sender_id: z.string().nullable(),
  })
  .meta({ id: 'ReactionSummary' });

export const readReceiptSchema = z
  .object({
    id: z.string(),
    message_event_id: z.string(),
    interaction_id: z.string(),
    agent_id: z.string(),
    read_at: z.string(),
  })
  .meta({ id: 'AgentReadReceipt' });

const members = {
  id: z.string(),
  created_at: z.string(),
  channel_id: z.string(),
  participant: interactionParticipant,
  content: z.array(contentItem),
  content_role: contentRole,
  complete: z.boolean(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  invocation_config: invocationConfig.nullable(),
  interaction_id: z.string().nullable().describe('The user turn that it belongs to'),
  sequence: z.int().nullable().describe("Place among all that happens in the channel; the channel's own counter"),
  span_id: z.string().nullable(),
  parent_span_id: z.string().nullable(),
  organization_id: z.string().nullable(),
  organization_application: z.string().nullable(),
  reactions: z.array(reactionSummary).nullable(),
  mention_invite_prompt_dismissed: z.boolean(),
  agent_read_receipts: z.array(readReceiptSchema).nullable(),
};

const nestedInteraction = z.object(members).meta({ id: 'NestedInteraction' });

export const interactionSchema = z
  .object({ ...members, nested_interactions: z.array(nestedInteraction).nullish() })
  .meta({ id: 'Interaction' });

export const interactionPageSchema = z
  .object({ items: z.array(interactionSchema), meta: pageMetaSchema })
  .meta({ id: 'InteractionPage' });

const MAX_CONTENT_ITEMS = 500;
const content = z.array(contentItem).max(MAX_CONTENT_ITEMS);

export const postInteractionBody = z
  .object({
    content,
    content_role: contentRole.optional().describe('Without it, what fits the sender'),
    participant: interactionParticipant
      .optional()
      .describe(
        "The sender; without it, the caller: the key's user, or an external agent that names the key's service. Another user and `system`, and for a user's key agents, too, take the scope `impersonate`",
      ),
    complete: z.boolean().default(true),
    metadata: jsonMap().nullish(),
    invocation_config: invocationConfig.nullish(),
    interaction_id: idReference({
      description: 'The user turn; without it, that of the parent, or a new one',
    }).nullish(),
    span_id: idReference({ description: 'Must be new in the channel; without it, one is made' }).nullish(),
    parent_span_id: idReference({ description: 'A span of the same channel' }).nullish(),
  })
  .meta({ id: 'InteractionPost' });
export type PostInteractionBody = z.infer<typeof postInteractionBody>;

export const appendContentBody = z.object({ content }).meta({ id: 'InteractionContentAppend' });

export const completeInteractionBody = z
  .object({ content: content.nullish().describe('Replaces what was there') })
  .meta({ id: 'InteractionCompletion' });

export const failInteractionBody = z
  .object({ reason: text({ max: 4_096 }).default('') })
  .meta({ id: 'InteractionFailure' });

export const writeDeltaBody = z
  .object({
    offset: z
      .int()
      .min(0)
      .nullish()
      .describe('UTF-16 code units that were written before: 409 if it is another number. Without it, `text` is all'),
    text: text({ description: 'What comes next' }),
  })
  .meta({ id: 'InteractionDelta' });

export const draftSchema = z
  .object({ interaction_id: z.string(), length: z.int().describe('UTF-16 code units so far: the next offset') })
  .meta({ id: 'InteractionDraft' });

export const channelParams = z.object({ id: idParam('Id of the channel') });

export const interactionParams = z.object({ interaction_id: idParam('Id of the interaction') });

const includeToolCallUpdates = (where: string) =>
  queryBoolean({ default: false, description: `Show the last update of each tool call that runs, too: ${where}` });

const includeIncomplete = queryBoolean({ default: false, description: 'Show incomplete interactions, too' });

const asOf = queryPointInHistory({
  description: 'What there was at this sequence of the channel (0: before anything) or time, as it was then',
}).optional();

export const readInteractionQuery = z.object({
  include_nested_interactions: queryBoolean({
    default: false,
    description: 'Show all that hangs below it, ordered by sequence',
  }),
  include_incomplete: includeIncomplete,
  include_tool_call_updates: includeToolCallUpdates(
    'behind the nested ones, those of its turn and those whose parent is shown',
  ),
  as_of: asOf,
});

export const listInteractionsQuery = z.object({
  ...pageQuery,
  order: z.enum(['asc', 'desc']).default('desc').describe('By sequence: `desc` begins with the newest'),
  after_sequence: queryInteger({ min: 0, description: 'Only those with a higher sequence' }).optional(),
  before_sequence: queryInteger({ min: 0, description: 'Only those with a lower sequence' }).optional(),
  created_after: timestamp({ description: 'Only those created later than this, to the millisecond' }).optional(),
  created_before: timestamp({ description: 'Only those created earlier than this, to the millisecond' }).optional(),
  content_role: contentRole.optional(),
  interaction_id: idReference({ description: 'Only those of this user turn' }).optional(),
  include_incomplete: includeIncomplete,
  include_tool_call_updates: includeToolCallUpdates(
    'behind the items of the page with the newest interactions, beside `size` and `total`',
  ),
  as_of: asOf,
});
