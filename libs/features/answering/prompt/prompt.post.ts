import type { FastifyRequest } from 'fastify';

import type { Agent } from '#libs/features/agents/index.ts';
import {
  type ChannelCreated,
  channelToCreate,
  type CreateChannelBody,
  interactionId,
  type InteractionRef,
  interactionToPost,
  type PostInteractionBody,
} from '#libs/features/channels/index.ts';

import type { StreamRevision } from '#libs/kernel/event.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { conflict, withPermit, notFound } from '#libs/platform/http/index.ts';

import type { Prompting } from '../context.ts';
import { invocationId } from '../decide/invocation.ts';

/** A prompt in the log: a message in a channel, which one agent answers by one run. */
export interface PostedPrompt extends InteractionRef {
  readonly organizationId: EntityId;
  readonly messageId: EntityId;
  readonly turnId: string;
  readonly runId: EntityId;
  /** Of the channel's stream. */
  readonly revision: StreamRevision;
}

/** A prompt for an agent, and its author. Default: the caller. */
export interface Prompt {
  readonly agent: Agent;
  readonly text: string;
  readonly participant?: PostInteractionBody['participant'];
}

/** Namespace of the ids of direct channels. Part of the storage format: never change it. */
const DIRECT_CHANNELS = '8f3a4d1c-95e2-4b70-a3c9-27d1f0b64e58';
/** Each archived direct channel costs a look-up. */
const MAX_DIRECT_CHANNELS = 100;

/**
 * Posts a prompt in the caller's direct channel with the agent. The channel's id is derived from both, so concurrent
 * prompts share one channel. After it was archived, the next prompt begins another one.
 *
 * @throws HttpError 409 after too many archived channels; the faults of commands
 */
export async function postDirectly(
  context: CommandContext,
  prompt: Prompt,
  prompting: Prompting,
): Promise<PostedPrompt> {
  const { organizationId, actor } = context;
  for (let index = 0; index < MAX_DIRECT_CHANNELS; index++) {
    const id = derivedId(
      DIRECT_CHANNELS,
      JSON.stringify([organizationId, actor.type, actor.id, prompt.agent.id, index]),
    );
    const channel = await channelOf(context, id, prompt, callerOf(context), prompting);
    const posted = await postIn(context, channel, prompt, prompting);
    if (posted !== null) return posted;
  }
  throw conflict('All direct channels with this agent are archived', 'archived');
}

/** The participant that is the caller, as posts name it. */
function callerOf({ actor }: CommandContext): NonNullable<CreateChannelBody['participants']>[number] {
  if (actor.type === 'user') return { type: 'authenticated_user', user_id: actor.id };
  return { type: 'external_agent', agent_metadata: { service: actor.id } };
}

/** A channel of the agent and the other participant alone. */
export function channelOf(
  context: CommandContext,
  id: EntityId,
  { agent }: Pick<Prompt, 'agent'>,
  other: NonNullable<CreateChannelBody['participants']>[number],
  { channels }: Pick<Prompting, 'channels'>,
): Promise<ChannelCreated> {
  const participants = [other, { type: 'agent' as const, id: agent.id }];
  const body = { name: agent.name, type: 'websocket' as const, channel_type: 'chat' as const, participants };
  // The agent as the log has it: read models may not know it yet.
  const directories = { ...channels.directories, agents: { find: async () => agent } };
  return channelToCreate({ ...context, commandId: id }, body, directories);
}

/**
 * Runs what one prompt of an organization needs before its run: until then it waits without work. Prompts that had to wait
 * begin at a pace that leaves time to the requests of other organizations, also in view of the runs that follow.
 *
 * @throws HttpError 429 and `Fault` `overloaded` if too many prompts wait; the errors of `work`
 */
export function begin<T>(
  { server: { callers } }: Pick<FastifyRequest, 'server'>,
  group: EntityId,
  { posting, pace }: Pick<Prompting, 'pace' | 'posting'>,
  work: () => Promise<T>,
): Promise<T> {
  let isQueued = false;
  const queued = {
    group,
    signal: undefined,
    detail: 'Too many prompts wait to be posted',
    retryAfterSeconds: 1,
  };
  const begun = withPermit(posting, queued, async () => {
    if (isQueued && callers.hasOthersThan(group)) await pace.wait();
    return work();
  });
  isQueued = true;
  return begun;
}

/**
 * Posts a prompt in a channel, which is created if it does not exist.
 *
 * @returns null if the channel is archived, unless an earlier run of the command has posted there
 * @throws the faults of commands
 */
export async function postIn(
  context: CommandContext,
  channel: ChannelCreated,
  prompt: Prompt,
  prompting: Prompting,
): Promise<PostedPrompt | null> {
  const { commandId, organizationId, actor, at, correlationId, traceparent } = context;
  const opening = {
    commandId: derivedId(commandId, channel.id),
    organizationId,
    actor,
    at,
    correlationId,
    traceparent,
  };
  const opened = await prompting.channels.open(opening, channel);
  if (!opened.ok && opened.rejection.reason !== 'archived') throw notFound();
  const { interaction, spanIsNew } = await interactionToPost(context, bodyOf(prompt), {
    directories: prompting.channels.directories,
    writer: 'operator',
  });
  const result = await prompting.channels.interactions
    .post(context, channel.id, interaction, { spanIsNew })
    .catch((error: unknown) => {
      throw opened.ok && opened.isChanged ? faultAfterWrite(error) : error;
    });
  if (!result.ok) {
    if (result.rejection.reason === 'archived') return null;
    throw new TypeError(`a prompt was refused: ${result.rejection.reason}`);
  }
  const { ref, turnId, revision } = result;
  return {
    ...ref,
    organizationId,
    messageId: interactionId(ref),
    turnId: turnId ?? interaction.spanId,
    runId: invocationId(ref.channelId, ref.sequence, prompt.agent.id),
    revision,
  };
}

function bodyOf({ agent, text, participant }: Prompt): PostInteractionBody {
  const mention = { type: 'agent' as const, id: agent.id, identifier: agent.id, identifier_type: 'uuid' as const };
  return {
    participant,
    content: [{ type: 'text', text }],
    content_role: 'user_message',
    complete: true,
    invocation_config: { mentions: [mention] },
  };
}
