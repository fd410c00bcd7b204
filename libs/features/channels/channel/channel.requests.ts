import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { invalid } from '#libs/platform/http/index.ts';
import type { Agents } from '#libs/features/agents/index.ts';
import type { Organizations } from '#libs/features/organizations/index.ts';
import type { Users } from '#libs/features/users/index.ts';

import type { ChannelCreated, NewChannel } from './channel.ts';
import type { CreateChannelBody, ParticipantInput } from './channel.schemas.ts';
import { participant, type Participant } from './participant.ts';

/** Where users, agents and the organization are looked up that a request names. */
export interface Directories {
  readonly users: Pick<Users, 'user'>;
  readonly agents: Pick<Agents, 'find'>;
  readonly organizations: Pick<Organizations, 'application' | 'summary'>;
}

type Location = readonly (string | number)[];

/**
 * Validates the references of a new channel, and adds the details of its users and agents.
 *
 * @throws ValidationFailure 422 as {@link participantToAdd}, and for a thread without a parent
 */
export async function channelToCreate(
  context: CommandContext,
  body: CreateChannelBody,
  directories: Directories,
): Promise<NewChannel> {
  const parentChannelId = body.parent_channel_id ?? null;
  const channelType = body.channel_type ?? (parentChannelId === null ? 'chat' : 'thread');
  requireThread(body, channelType);
  const inputs = body.participants ?? callerAsParticipant(context);
  const participants = await Promise.all(
    inputs.map((input, index) => participantToAdd(context, input, directories, ['body', 'participants', index])),
  );
  return {
    id: context.commandId,
    type: body.type,
    channelType,
    name: body.name,
    participants,
    metaData: body.meta_data ?? null,
    source: body.source ?? null,
    agentInvocationBehavior: body.agent_invocation_behavior ?? null,
    parentChannelId,
    originMessageId: body.origin_message_id ?? null,
    runConcurrency: body.run_concurrency ?? null,
    ownerId: await ownerOf(context, body, directories),
  };
}

/**
 * The participant that an input describes. The id of its record is derived from the command and the location in the
 * input, so that a repeated command adds no participant twice.
 *
 * @throws ValidationFailure 422 for a user or an agent that the organization does not have, and for an agent that is
 *   deactivated
 */
export async function participantToAdd(
  context: CommandContext,
  input: ParticipantInput,
  { users, agents, organizations }: Directories,
  at: Location = ['body'],
): Promise<Participant> {
  const participantId = derivedId(context.commandId, `participant ${at.join('.')}`);
  switch (input.type) {
    case 'authenticated_user': {
      const user = await users.user(context.organizationId, input.user_id);
      if (user === null) throw invalid([...at, 'user_id'], 'the organization has no such user', input.user_id);
      const { id: userId, displayName, imageUrl } = user;
      return { type: input.type, participantId, userId, displayName, imageUrl, isOwner: true };
    }
    case 'non_authenticated_user':
      return { type: input.type, participantId, userMetadata: input.user_metadata ?? null };
    case 'external_agent':
      return { type: input.type, participantId, agentMetadata: input.agent_metadata ?? null };
    case 'agent': {
      const agent = await agents.find(context.organizationId, input.id);
      if (agent === null) throw invalid([...at, 'id'], 'the organization has no such agent', input.id);
      if (!agent.isActive) throw invalid([...at, 'id'], 'the agent is deactivated', input.id);
      const organization = await organizations.summary(context.organizationId);
      // Agents have no `agent_url`, and Parley verifies none.
      const details = { ...agent, organization, agentUrl: null, isVerified: false };
      return participant.parse({ ...details, type: input.type, participantId, agentId: agent.id });
    }
  }
}

/** @throws ValidationFailure 422 for a user that the organization does not have */
async function ownerOf(
  { organizationId, actor }: CommandContext,
  { owner_id: id = null }: CreateChannelBody,
  { users }: Directories,
): Promise<EntityId | null> {
  const own = actor.type === 'user' ? actor.id : null;
  if (id === null || id === own) return own;
  if ((await users.user(organizationId, id)) !== null) return id;
  throw invalid(['body', 'owner_id'], 'the organization has no such user', id);
}

function callerAsParticipant(context: CommandContext): ParticipantInput[] {
  return context.actor.type === 'user' ? [{ type: 'authenticated_user', user_id: context.actor.id }] : [];
}

function requireThread(body: CreateChannelBody, channelType: ChannelCreated['channelType']): void {
  const { parent_channel_id: parent, origin_message_id: origin } = body;
  if (channelType === 'thread' && !parent) {
    throw invalid(['body', 'parent_channel_id'], 'a thread needs the channel that it belongs to', parent ?? null);
  }
  if (parent && channelType !== 'thread') {
    throw invalid(['body', 'channel_type'], 'a channel with a parent is a thread', channelType);
  }
  if (origin && !parent) {
    throw invalid(['body', 'origin_message_id'], 'only a thread has a message that started it', origin);
  }
}
