import type { EntityId } from '#libs/kernel/ids.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { invalid, mayNotActAs, notFound } from '#libs/platform/http/index.ts';

import type { InteractionDirectory } from './interaction-directory.ts';
import type { ContentItem, ContentRole, InteractionParticipant } from './interaction.content.ts';
import { mayWriteAs } from './interaction.senders.ts';
import type { Writer } from './interaction.senders.ts';
import { placeOfInteraction } from './interaction.id.ts';
import type { InteractionPlace } from './interaction.id.ts';
import type { NewInteraction } from './interactions.commands.ts';
import type { PostInteractionBody } from './interactions.schemas.ts';

/** The place that an id in a path names. @throws HttpError 404 for an id that no interaction can have */
export function requirePlace(id: EntityId): InteractionPlace {
  const place = placeOfInteraction(id);
  if (place === null) throw notFound();
  return place;
}

/**
 * The interaction that a request posts: its sender and its role follow from the caller where they are left
 * out, its span from the command, so that a repeated command posts nothing twice.
 *
 * @param writer whose key it is posted with
 * @throws HttpError 403 for a sender as whom the writer may not post
 *
 * `update` says which tool call it is about, where it is such an update and nothing else.
 *
 * @throws ValidationFailure 422 for a user that the organization does not have, and for an update of a tool
 *   call among other things
 */
export async function interactionToPost(
  context: CommandContext,
  body: PostInteractionBody,
  { directory, writer }: { readonly directory: InteractionDirectory; readonly writer: Writer },
): Promise<{
  readonly interaction: NewInteraction;
  readonly spanIsNew: boolean;
  readonly update: { readonly toolCallId: string; readonly sequence: number } | null;
}> {
  const participant = body.participant ?? callerAsSender(context);
  if (!mayWriteAs(writer, participant)) throw mayNotActAs();
  const contentRole = body.content_role ?? roleOf(participant);
  const update = updateOf(contentRole, body.content);
  await requireSender(context, participant, directory);
  return {
    spanIsNew: !body.span_id,
    update,
    interaction: {
      participant,
      content: body.content,
      contentRole,
      complete: body.complete,
      metadata: body.metadata ?? null,
      invocationConfig: body.invocation_config ?? null,
      turnId: body.interaction_id ?? null,
      spanId: body.span_id ?? derivedId(context.commandId, 'span'),
      parentSpanId: body.parent_span_id ?? null,
      organizationApplication: await directory.application(context.organizationId),
    },
  };
}

/** What an interaction of the role `tool_call_update` is about; null for the other roles. @throws ValidationFailure 422 */
function updateOf(
  role: ContentRole,
  content: readonly ContentItem[],
): { readonly toolCallId: string; readonly sequence: number } | null {
  if (role !== 'tool_call_update') {
    refuseUpdates(content);
    return null;
  }
  const [item] = content;
  if (item?.type !== 'tool_call_update' || content.length > 1) {
    throw invalid(['body', 'content'], 'a tool_call_update has one item, of the type tool_call_update', content);
  }
  return { toolCallId: item.tool_call_id, sequence: item.sequence };
}

/** What is kept in the log holds no updates of tool calls. @throws ValidationFailure 422 */
export function refuseUpdates(content: readonly ContentItem[]): void {
  const index = content.findIndex(({ type }) => type === 'tool_call_update');
  if (index < 0) return;
  throw invalid(
    ['body', 'content', index, 'type'],
    'an update of a tool call is posted alone, with the content_role tool_call_update',
    'tool_call_update',
  );
}

/** The contract has no sender of the type service: to a channel, a service is an agent from outside. */
function callerAsSender({ actor }: CommandContext): InteractionParticipant {
  switch (actor.type) {
    case 'user':
      return { type: 'authenticated_user', user_id: actor.id };
    case 'service':
      return { type: 'external_agent', agent_metadata: { service: actor.id } };
    default:
      return { type: 'system' };
  }
}

function roleOf({ type }: InteractionParticipant): ContentRole {
  switch (type) {
    case 'agent':
    case 'external_agent':
      return 'agent_response';
    case 'system':
      return 'channel_notification';
    case 'authenticated_user':
    case 'non_authenticated_user':
    case 'maybe_user':
      return 'user_message';
  }
}

async function requireSender(
  { organizationId, actor }: CommandContext,
  participant: InteractionParticipant,
  directory: InteractionDirectory,
): Promise<void> {
  if (participant.type !== 'authenticated_user') return;
  // Who calls is known to be an active user: the key says so.
  if (actor.type === 'user' && actor.id === participant.user_id) return;
  if ((await directory.user(organizationId, participant.user_id)) !== null) return;
  throw invalid(['body', 'participant', 'user_id'], 'the organization has no such user', participant.user_id);
}
