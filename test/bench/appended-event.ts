/** The events that both sides of the append rows write: same type, same data, same metadata, same sizes. */
import type { ChannelCreated } from '#libs/features/channels/channel.events.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

export interface AppendTask {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  /** Commands of ours in flight on the one channel. */
  readonly writers: number;
  /** Streams of theirs, each with one append in flight. */
  readonly streams: number;
  /** Events in one append of theirs. */
  readonly batch: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

export interface AppendAnswer {
  readonly rate: number;
  readonly cpuMicros: number;
  /** The stream, or the first of them, and how many of its events were acknowledged. */
  readonly stream: string;
  readonly events: number;
}

const ORGANIZATION = '0198f3aa-7c11-7d55-8e7a-0000000000aa';
const AT = '2026-01-31T12:00:00.000Z';

export function appendedEvent(n: number) {
  return { type: 'ChannelRenamed.v1', data: { name: `Support of order ${String(n).padStart(10, '0')}` } };
}

/** What a gateway knows of a command. */
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
