/** Input and errors of requests and socket commands about interactions. */
import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  conflict,
  forbidden,
  invalid,
  invalidBody,
  mayNotActAs,
  type MemberRoute,
  notFound,
} from '#libs/platform/http/index.ts';

import { type RequestedPost, spanOf } from './interaction.commands.ts';
import { MAX_DEPTH, MAX_OPEN, type InteractionRejection, mayWriteAs, type Writer } from './interaction.ts';
import type { ContentItem, ContentRole, InteractionParticipant } from './interaction.content.ts';
import { interactionId, parseInteractionId, type InteractionRef } from './interaction.id.ts';
import type { PostInteractionBody } from './interaction.schemas.ts';
import type { Directories } from '../channel/channel.requests.ts';

/** Parses an id in a path. @throws HttpError 404 for an id that no interaction can have */
export function requireInteractionRef(id: EntityId): InteractionRef {
  const ref = parseInteractionId(id);
  if (ref === null) throw notFound();
  return ref;
}

/** Of routes whose path names an interaction, whose id contains its channel. */
export const OF_INTERACTION: MemberRoute = {
  channelOf: ({ params }) =>
    parseInteractionId((params as { readonly interaction_id: string }).interaction_id)?.channelId ?? null,
};

/** Items that members may post; agents, tools and the platform post the others. */
const MEMBER_ITEMS: ReadonlySet<ContentItem['type']> = new Set([
  'text',
  'audio_tag',
  'media',
  'custom_content',
  'request_payment',
  'commit_payment',
  'reject_payment',
  'complete_payment',
  'cancel_payment',
]);

/** @throws HttpError 403 for content that the writer may not post because it is a member */
function refuseOfMember(writer: Writer, content: readonly ContentItem[], role: ContentRole = 'user_message'): void {
  if (writer === 'operator' || !writer.isMember) return;
  const other = content.find(({ type }) => !MEMBER_ITEMS.has(type))?.type;
  if (role === 'user_message' && other === undefined) return;
  throw forbidden(`Members post messages of users: no ${other ?? role}`, 'not_for_members');
}

/**
 * The interaction that a request posts. Sender and role default to those of the caller, and the span is derived from the
 * command, so that a repeated command does not post twice.
 *
 * @throws HttpError 403 for a sender that `parts.writer` may not write as
 * @throws ValidationFailure 422 for a user that the organization does not have, and for a tool-call update with other
 *   content
 */
export async function interactionToPost(
  context: CommandContext,
  body: PostInteractionBody,
  {
    directories,
    writer,
  }: { readonly directories: Pick<Directories, 'organizations' | 'users'>; readonly writer: Writer },
): Promise<RequestedPost> {
  const participant = body.participant ?? callerAsSender(context);
  if (!mayWriteAs(writer, participant)) throw mayNotActAs();
  const contentRole = body.content_role ?? roleOf(participant);
  refuseOfMember(writer, body.content, contentRole);
  const update = updateOf(contentRole, body.content);
  await requireSender(context, participant, directories);
  return {
    spanIsNew: !body.span_id,
    update,
    interaction: {
      participant,
      content: body.content,
      contentRole,
      complete: body.complete ?? true,
      metadata: body.metadata ?? null,
      invocationConfig: body.invocation_config ?? null,
      turnId: body.interaction_id ?? null,
      spanId: body.span_id ?? spanOf(context.commandId),
      parentSpanId: body.parent_span_id ?? null,
      organizationApplication: await directories.organizations.application(context.organizationId),
    },
  };
}

function updateOf(role: ContentRole, content: readonly ContentItem[]): RequestedPost['update'] {
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

/**
 * For content that a writer adds to an interaction, or replaces content with.
 *
 * @throws HttpError 403; ValidationFailure 422
 */
export function requireAddable(writer: Writer, content: readonly ContentItem[]): void {
  refuseUpdates(content);
  refuseOfMember(writer, content);
}

/** Tool-call updates are not appended to the log. @throws ValidationFailure 422 */
function refuseUpdates(content: readonly ContentItem[]): void {
  const index = content.findIndex(({ type }) => type === 'tool_call_update');
  if (index < 0) return;
  throw invalid(
    ['body', 'content', index, 'type'],
    'an update of a tool call is posted alone, with the content_role tool_call_update',
    'tool_call_update',
  );
}

/** The contract defines no senders for services: a service is an external agent. */
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
  { users }: Pick<Directories, 'users'>,
): Promise<void> {
  if (participant.type !== 'authenticated_user') return;
  // Authentication has verified that the caller is an active user.
  if (actor.type === 'user' && actor.id === participant.user_id) return;
  if ((await users.user(organizationId, participant.user_id)) !== null) return;
  throw invalid(['body', 'participant', 'user_id'], 'the organization has no such user', participant.user_id);
}

/** The error of a rejected command, for HTTP and sockets. Quotes its input from `body`. */
export function interactionError(
  rejection: InteractionRejection,
  { channelId, body }: { readonly channelId: EntityId; readonly body: unknown },
): Error {
  switch (rejection.reason) {
    case 'not_found':
      return notFound();
    case 'archived':
      return conflict('The channel is archived', 'archived');
    case 'parent_not_found':
      return invalidBody(body, 'parent_span_id', 'the channel has no such span');
    case 'span_taken':
      return invalidBody(body, 'span_id', 'the channel has this span already');
    case 'too_deep':
      return invalidBody(body, 'parent_span_id', `a tree is at most ${MAX_DEPTH} deep`);
    case 'too_many_open':
      return tooManyOpen(channelId, rejection.oldest);
    case 'complete_already':
      return conflict('The interaction is complete', 'complete_already');
    case 'not_editable':
      return conflict('Only complete messages of users and agents are edited and deleted', 'not_editable');
    case 'deleted':
      return conflict('The interaction was deleted', 'deleted');
    case 'not_the_sender':
      return mayNotActAs();
    default:
      return unreachable(rejection);
  }
}

/** Names the oldest one and how to end it, because its client may have crashed. */
function tooManyOpen(channelId: EntityId, oldest: ChannelSequence | null): Error {
  const limit = `A channel has at most ${MAX_OPEN} incomplete interactions, with 1 MiB together`;
  if (oldest === null) return conflict(limit, 'too_many_open');
  const id = interactionId({ channelId, sequence: oldest });
  return conflict(
    `${limit}: complete one or let it fail first. POST /api/v1/interactions/${id}/fail ends the oldest`,
    'too_many_open',
    {},
    { oldest_incomplete: id },
  );
}
