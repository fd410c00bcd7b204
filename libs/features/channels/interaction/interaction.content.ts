/*
 * The parts of an interaction, field by field as in the contract (sections 2.13 to 2.15). These schemas check requests
 * and describe responses; the log contains the same JSON. Optional members have a default, so that all readers find them.
 */
import { z } from 'zod';

import { completionOf, httpUrl, idReference, jsonMap, stringMap, text } from '#libs/platform/http/index.ts';

const line = text({ max: 1_024 });
const longText = text({ max: 131_072 });
const map = jsonMap();

/** An optional member that is null where it was not given. */
const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null);

/** One form of a union whose members differ by their `type`. */
function variant<Type extends string, Shape extends z.ZodRawShape>(type: Type, id: string, shape: Shape) {
  return z.object({ type: z.literal(type), ...shape }).meta({ id });
}

export const contentRole = z
  .enum([
    'user_message',
    'agent_response',
    'agent_reasoning',
    'tool_call',
    'tool_call_result',
    'tool_call_update',
    'internal_error',
    'channel_notification',
  ])
  .meta({ id: 'ContentRole' });
export type ContentRole = z.infer<typeof contentRole>;

export const interactionParticipant = z
  .discriminatedUnion('type', [
    variant('authenticated_user', 'InteractionAuthenticatedUser', { user_id: idReference() }),
    variant('non_authenticated_user', 'InteractionNonAuthenticatedUser', { user_metadata: orNull(stringMap()) }),
    variant('maybe_user', 'InteractionMaybeUser', { email: text({ min: 3, max: 320 }) }),
    variant('agent', 'InteractionAgent', {
      agent_id: idReference(),
      agent_metadata: orNull(stringMap()),
      forwarded_for_agent: orNull(
        z.object({
          agent_address: line,
          agent_name: line,
          image_url: orNull(httpUrl()),
          agent_avatar_href: orNull(text({ max: 2_083, deprecated: true })),
        }),
      ),
    }),
    variant('external_agent', 'InteractionExternalAgent', { agent_metadata: orNull(stringMap()) }),
    variant('system', 'InteractionSystem', {}),
  ])
  .meta({ id: 'InteractionParticipant' });
export type InteractionParticipant = z.input<typeof interactionParticipant>;

const funds = z
  .object({ amount: line, currency: line, payment_method: line.default('payment_provider_a') })
  .meta({ id: 'Funds' });

const checklistItem = z
  .object({
    label: text({ max: 4_096 }),
    state: z.enum(['pending', 'active', 'done']).meta({ id: 'ChecklistItemState' }).default('pending'),
  })
  .meta({ id: 'ChecklistItem' });

const toolCallUpdate = variant('tool_call_update', 'ToolCallUpdateContent', {
  tool_name: line,
  tool_call_id: line,
  sequence: z.int(),
  update: z.union([
    z.object({ text: longText, kind: z.literal('string').default('string') }).meta({ id: 'ToolCallText' }),
    z
      .object({ items: z.array(checklistItem).max(500), kind: z.literal('checklist').default('checklist') })
      .meta({ id: 'ToolCallChecklist' }),
  ]),
});

const mediaMetadata = z
  .object({
    media_id: line,
    mime_type: line,
    width: z.int(),
    height: z.int(),
    description: text({ max: 4_096 }),
    source_url: orNull(line),
    name: orNull(line),
    resource_type: orNull(line),
    format: orNull(line),
    preview: orNull(line),
  })
  .meta({ id: 'MediaMetadata' });

export const contentItem = z
  .discriminatedUnion('type', [
    variant('text', 'TextContent', { text: longText }),
    variant('audio_tag', 'AudioTagContent', { tag: line }),
    variant('media', 'MediaContent', { meta_data: mediaMetadata, media_url: orNull(httpUrl()) }),
    variant('custom_content', 'CustomContent', { name: line, version: line, data: map, alt_text: orNull(longText) }),
    variant('tool_call', 'ToolCallContent', {
      tool_name: line,
      tool_args: map,
      tool_call_id: orNull(line),
      display_text: orNull(longText),
    }),
    variant('tool_call_result', 'ToolCallResultContent', {
      tool_name: line,
      tool_result: map,
      tool_call_id: orNull(line),
      status: orNull(
        z.enum(['success', 'failure', 'rate_limited', 'action_required']).meta({ id: 'ToolCallResultStatus' }),
      ),
      display_text: orNull(longText),
    }),
    toolCallUpdate,
    variant('request_payment', 'RequestPaymentContent', {
      accepted_funds: z.array(funds).max(100),
      recipient: line,
      deadline_seconds: z.int(),
      reference: orNull(line),
      description: orNull(longText),
      metadata: orNull(map),
    }),
    variant('commit_payment', 'CommitPaymentContent', {
      funds,
      recipient: line,
      transaction_id: line,
      reference: orNull(line),
      description: orNull(longText),
      metadata: orNull(map),
    }),
    variant('reject_payment', 'RejectPaymentContent', { reason: orNull(longText) }),
    variant('complete_payment', 'CompletePaymentContent', { transaction_id: orNull(line) }),
    variant('cancel_payment', 'CancelPaymentContent', { transaction_id: orNull(line), reason: orNull(longText) }),
  ])
  .meta({ id: 'InteractionContent' });
export type ContentItem = z.input<typeof contentItem>;
export type StoredContentItem = z.output<typeof contentItem>;

const flag = orNull(z.boolean());
const word = orNull(line);

const structuredMention = z
  .object({
    type: z.enum(['agent', 'user']).meta({ id: 'MentionedType' }),
    id: line,
    identifier: line,
    identifier_type: z.enum(['handle', 'address', 'uuid']).meta({ id: 'MentionIdentifierType' }),
    offset: orNull(z.int()),
    length: orNull(z.int()),
  })
  .meta({ id: 'StructuredMention' });

const privateMentionRequest = z
  .object({
    twin_id: line,
    outcome: z.enum(['private_friend_request', 'private_already_requested']).meta({ id: 'PrivateMentionOutcome' }),
    friendship_id: line,
    channel_id: line,
    owner_display_name: orNull(line),
  })
  .meta({ id: 'PrivateMentionRequest' });

export const invocationConfig = z
  .object({
    planner_mode: flag,
    athena_mode: flag,
    voice_mode: flag,
    enable_avatar: flag,
    force_collaboration: flag,
    use_reasoning_history: flag,
    thinking: flag,
    enable_web_search: flag,
    enable_study_mode: flag,
    enable_scheduled_prompt_tools: flag,
    avoid_repetition: flag,
    enable_threads: flag,
    slash_only: flag,
    supports_tool_call_upsert: flag,
    model_name: word,
    voice_id: word,
    character_id: word,
    activity_id: word,
    feed_activity_id: word,
    thinking_budget: orNull(z.int()),
    reasoning_effort: orNull(z.enum(['low', 'medium', 'high']).meta({ id: 'ReasoningEffort' })),
    collaboration_participant_ids: orNull(z.array(line).max(500)),
    slash_skills: orNull(z.array(line).max(500)),
    mentions: orNull(z.array(structuredMention).max(500)),
    withheld_mentions: orNull(z.array(structuredMention).max(500)),
    private_mention_requests: orNull(z.array(privateMentionRequest).max(500)),
  })
  .meta({ id: 'InvocationConfig' });

/*
 * Adds the optional members that a part lacks. Clients and FastAPI's models expect them, but earlier versions stored
 * what the client had sent.
 */
export const completeParticipant = completionOf(interactionParticipant);
export const completeContent = completionOf(z.array(contentItem));
export const completeConfig = completionOf(invocationConfig);
