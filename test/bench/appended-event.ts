/** The events that both sides of the append rows write: same type, same data, same metadata, same sizes. */
import type { ChannelCreated } from '#libs/features/channels/channel/channel.ts';
import type { InteractionPosted } from '#libs/features/channels/interaction/interaction.events.ts';
import { derivedId, type EntityId, newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

/** Kind of the writes: new names of channels, interactions, or interactions below the first one. */
export type Written = 'names' | 'posts' | 'replies';

export interface AppendTask {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  readonly what: Written;
  /** Commands of ours in flight on each channel. */
  readonly writers: number;
  /** Channels of ours; streams of theirs, each with one append in flight. */
  readonly streams: number;
  /** Events in one append of theirs. */
  readonly batch: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

export interface AppendAnswer {
  readonly rate: number;
  readonly cpuMicros: number;
  /** The stream, or the first of them, and the count of its acknowledged events. */
  readonly stream: string;
  readonly events: number;
}

const ORGANIZATION = '0198f3aa-7c11-7d55-8e7a-0000000000aa';
const AT = '2026-01-31T12:00:00.000Z';

export function appendedName(n: number): string {
  return `Support of order ${digits(n)}`;
}

/** Text of a message, of the size of the messages in docs/samples. */
export function appendedPost(n: number, commandId: EntityId, parentSpanId: string | null) {
  return {
    participant: { type: 'non_authenticated_user', user_metadata: { name: 'Ada Brandt' } },
    content: [
      {
        type: 'text',
        text: `For order ${digits(n)} one payment of 39.90 went through. The second is only a reservation that your bank drops by itself.`,
      },
    ],
    contentRole: 'user_message',
    complete: true,
    metadata: { source_time: AT },
    invocationConfig: null,
    turnId: null,
    spanId: derivedId(commandId, 'span'),
    parentSpanId,
    organizationApplication: null,
  } as const;
}

/** @param root the span that replies refer to */
export function appendedEvent(
  what: Written,
  n: number,
  commandId: EntityId,
  root: string,
): { readonly type: string; readonly data: object } {
  if (what === 'names') return { type: 'ChannelRenamed.v1', data: { name: appendedName(n) } };
  // The parent of the others.
  const isRoot = what === 'posts' || n === 1;
  const post = appendedPost(n, commandId, isRoot ? null : root);
  const data: InteractionPosted = {
    ...post,
    participant: { ...post.participant },
    content: [...post.content],
    turnId: isRoot ? post.spanId : root,
    depth: isRoot ? 1 : 2,
  };
  return { type: 'InteractionPosted.v1', data };
}

function digits(n: number): string {
  return String(n).padStart(10, '0');
}

/** The metadata of a command, as a gateway adds it. */
export function metadataFor(commandId: string): Omit<CommandContext, 'commandId'> {
  return {
    organizationId: ORGANIZATION,
    actor: { type: 'user', id: '0198f3aa-7c11-7d55-8e7a-0000000000bb' },
    at: AT,
    correlationId: commandId,
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  };
}

export function benchChannel(): ChannelCreated {
  return {
    id: newId(),
    type: 'websocket',
    channelType: 'chat',
    name: 'Support',
    participants: [],
    metaData: { order: 4711, tags: ['delivery', 'urgent'] },
    source: null,
    agentInvocationBehavior: 'all_messages',
    parentChannelId: null,
    originMessageId: null,
  };
}
