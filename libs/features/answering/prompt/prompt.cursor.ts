import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

import type { Agent } from '#libs/features/agents/index.ts';
import { CHANNEL, interactionCodec, interactionId, parseInteractionId } from '#libs/features/channels/index.ts';

import { invocationId } from '../decide/invocation.ts';
import { type EventMetadata, sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { invalid, type Principal } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import type { PostedPrompt } from './prompt.post.ts';

/** Events of a channel between a prompt and the cursor of a client that resumes. */
const MAX_EVENTS = 5_000;
const CURSOR = /^([A-Za-z0-9_-]{30})\.(\d{1,15})$/;

/** The id of an event of a prompt's stream: the message, and the sequence of the event in the channel. */
export function cursorOf({ messageId }: Pick<PostedPrompt, 'messageId'>, sequence: number): string {
  return `${messageId}.${sequence}`;
}

/** Where a client resumes the stream of a prompt. */
export interface ResumedPrompt {
  readonly posted: PostedPrompt;
  /** Sequence of the last event that the client has seen. */
  readonly position: number;
  /** The interactions of the turn up to there. */
  readonly known: readonly EntityId[];
}

const config = z.object({ mentions: z.array(z.object({ type: z.string(), id: z.string() })) });

/**
 * The prompt that `Last-Event-ID` names, read from the log; null without the header. A caller resumes only its own: the
 * scope of the route is not that of reading channels.
 *
 * @throws ValidationFailure 422 for what is no event of the caller's prompts to this agent; `Fault` `store_unavailable`
 */
export async function resumedPrompt(
  { headers, principal }: Pick<FastifyRequest, 'headers' | 'principal'>,
  agent: Pick<Agent, 'id'>,
  store: Pick<EventStore, 'readStream'>,
): Promise<ResumedPrompt | null> {
  const header = headers['last-event-id'];
  if (header === undefined || header === '') return null;
  const refuse = () =>
    invalid(['header', 'last-event-id'], 'this is no event of a prompt of yours to this agent', header);
  const [, messageId = '', last] = CURSOR.exec(String(header)) ?? [];
  const ref = parseInteractionId(messageId);
  const position = Number(last);
  if (ref === null || position < ref.sequence - 1) throw refuse();
  const { organizationId } = principal;
  const { channelId, sequence } = ref;
  const known: EntityId[] = [];
  let turnId: string | null = null;
  let revision = streamRevision(sequence - 1);
  const limit = Math.min(MAX_EVENTS, Math.max(1, position - sequence + 1));
  for await (const stored of store.readStream(streamName(CHANNEL, channelId), { from: revision, limit })) {
    const event = interactionCodec.types.has(stored.type) ? interactionCodec.decode(stored) : null;
    if (event?.type === 'InteractionPosted.v1') {
      const { turnId: turn, spanId, contentRole, invocationConfig } = event.data;
      if (turnId === null) {
        const mentions = config.safeParse(invocationConfig).data?.mentions ?? [];
        const isPrompt = contentRole === 'user_message' && mentions.some(({ id }) => id === agent.id);
        if (!isPrompt || !isBy(principal, event.metadata)) throw refuse();
        turnId = turn ?? spanId;
      }
      if ((turn ?? spanId) === turnId) known.push(interactionId({ channelId, sequence: sequenceOf(event.revision) }));
    }
    if (turnId === null) throw refuse();
    revision = stored.revision;
  }
  if (turnId === null) throw refuse();
  const runId = invocationId(channelId, sequence, agent.id);
  return { posted: { channelId, sequence, organizationId, messageId, turnId, runId, revision }, position, known };
}

function isBy(
  { organizationId, principalType, principalId }: Principal,
  { organizationId: own, actor }: EventMetadata,
) {
  return own === organizationId && actor.type === principalType && actor.id === principalId;
}
