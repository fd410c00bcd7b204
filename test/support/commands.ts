/** Fixtures that most tests of commands need. */
import type { Channels } from '#libs/features/channels/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

/** Details of a channel with every optional field left out; only its id is missing. */
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

/** Metadata of a new command that a service of the organization sends now. */
export function serviceCommand(organizationId: string, change: Partial<CommandContext> = {}): CommandContext {
  return {
    commandId: newId(),
    organizationId,
    actor: { type: 'service', id: 'test' },
    at: new Date().toISOString(),
    ...change,
  };
}
