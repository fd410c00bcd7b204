/** What most tests of commands need, and none of them is about. */
import type { Channels } from '#libs/features/channels/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

/** A channel of which nothing is set that can be left out; it lacks only its id. */
export const PLAIN_CHANNEL: Omit<Parameters<Channels['create']>[1], 'id'> = {
  type: 'websocket',
  channelType: 'chat',
  name: 'plain',
  participants: [],
  metaData: null,
  source: null,
  agentInvocationBehavior: null,
  parentChannelId: null,
  originMessageId: null,
};

/** Of a new command that a service of the organization sends now. */
export function serviceCommand(organizationId: string, change: Partial<CommandContext> = {}): CommandContext {
  return {
    commandId: newId(),
    organizationId,
    actor: { type: 'service', id: 'test' },
    at: new Date().toISOString(),
    ...change,
  };
}
