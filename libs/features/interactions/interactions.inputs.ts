import { derivedId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { HttpError, invalid } from '#libs/platform/http/index.ts';

import type { InteractionDirectory } from './interaction-directory.ts';
import type { ContentItem, ContentRole, InteractionParticipant } from './interaction.content.ts';
import type { NewInteraction } from './interactions.commands.ts';
import type { PostInteractionBody } from './interactions.schemas.ts';

/**
 * The interaction that a request posts: its sender and its role follow from the caller where they are left
 * out, its span from the command, so that a repeated command posts nothing twice.
 *
 * @throws ValidationFailure 422 for a user that the organization does not have; HttpError 501 for tool-call
 *   updates
 */
export async function interactionToPost(
  context: CommandContext,
  body: PostInteractionBody,
  directory: InteractionDirectory,
): Promise<{ readonly interaction: NewInteraction; readonly spanIsNew: boolean }> {
  const participant = body.participant ?? callerAsSender(context);
  const contentRole = body.content_role ?? roleOf(participant);
  refuseEphemeral(contentRole, body.content);
  await requireSender(context, participant, directory);
  return {
    spanIsNew: !body.span_id,
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

/** @throws HttpError 501 */
export function refuseEphemeral(role: ContentRole | null, content: readonly ContentItem[]): void {
  if (role !== 'tool_call_update' && content.every(({ type }) => type !== 'tool_call_update')) return;
  throw new HttpError(501, 'not_implemented', 'Tool-call updates cannot be sent yet');
}

function callerAsSender({ actor }: CommandContext): InteractionParticipant {
  return actor.type === 'user' ? { type: 'authenticated_user', user_id: actor.id } : { type: 'system' };
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
