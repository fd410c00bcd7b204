import { z } from 'zod';

import { type InteractionPosted, parseInteractionId } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { Message } from './invocation.ts';

/** A message without its depth, which depends on other invocations. */
export interface PostedMessage extends Omit<Message, 'depth'> {
  readonly messageId: EntityId;
  readonly channelId: EntityId;
  readonly sequence: ChannelSequence;
  readonly turnId: string;
  readonly spanId: string;
  readonly content: InteractionPosted['content'];
  readonly invocationConfig: InteractionPosted['invocationConfig'];
}

const MESSAGES: ReadonlySet<string> = new Set(['user_message', 'agent_response']);

/** Other interactions, such as tool calls, are no messages. */
export function isMessage(contentRole: string): boolean {
  return MESSAGES.has(contentRole);
}

const mentions = z.array(z.object({ type: z.string(), id: z.string() })).nullish();
/** The form for which requests were checked when they were posted. */
const config = z.object({ mentions, withheld_mentions: mentions });

/** Null for interactions that are no messages, and for those without a valid id. */
export function messageOf(messageId: EntityId, posted: InteractionPosted): PostedMessage | null {
  const ref = parseInteractionId(messageId);
  if (ref === null || !isMessage(posted.contentRole)) return null;
  const { participant, content, invocationConfig, spanId, turnId } = posted;
  const given = config.parse(invocationConfig ?? {});
  const agentId = participant['agent_id'];
  return {
    ...ref,
    messageId,
    turnId: turnId ?? spanId,
    spanId,
    content,
    invocationConfig,
    sender: { type: participant.type, agentId: typeof agentId === 'string' ? agentId : null },
    mentions: agentsIn(given.mentions),
    withheld: agentsIn(given.withheld_mentions),
  };
}

function agentsIn(list: z.infer<typeof mentions>): ReadonlySet<EntityId> {
  return new Set((list ?? []).flatMap(({ type, id }) => (type === 'agent' ? [id] : [])));
}

export function textOf({ content }: Pick<PostedMessage, 'content'>): string {
  return content
    .flatMap(({ type, ['text']: text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
    .join('\n');
}
