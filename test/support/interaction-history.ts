import type { ChannelCommands } from '#libs/features/channels/index.ts';
import type { InteractionCommands } from '#libs/features/interactions/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';

import { randomFrom } from './channel-history.ts';

const NAMESPACE = '0192f5b2-3c68-7aa4-9f5c-2f5a8b0f3a12';
const ROLES = ['user_message', 'agent_response', 'tool_call'] as const;
const AT_ONCE = 12;

/** What stands for one gateway. */
export interface Writer {
  readonly channels: { readonly commands: ChannelCommands };
  readonly interactions: { readonly commands: InteractionCommands };
}

type Random = (below: number) => number;

interface PlayedChannel {
  readonly id: string;
  readonly organizationId: string;
  readonly spans: string[];
}

/**
 * Sends random commands on interactions of four channels of two organizations, some at once and through
 * every writer: posts with and without parents, spans of the caller's and taken ones, incomplete ones, and
 * what becomes of those; some are refused.
 *
 * @returns how many commands were accepted, and how many refused
 */
export async function playInteractions(
  writers: readonly [Writer, ...Writer[]],
  { seed, commands }: { readonly seed: number; readonly commands: number },
): Promise<{ readonly accepted: number; readonly refused: number }> {
  const random = randomFrom(seed);
  const channels: PlayedChannel[] = [];
  for (let index = 0; index < 4; index++) {
    const context = contextOf(seed, `channel ${index}`, `org-${index % 2}`);
    await createChannel(writers[0].channels.commands, context);
    channels.push({ id: context.commandId, organizationId: context.organizationId, spans: [] });
  }
  let accepted = 0;
  for (let from = 0; from < commands; from += AT_ONCE) {
    const results = await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, commands - from) }, (_, index) => {
        const channel = channels[random(channels.length)] ?? { id: '', organizationId: '', spans: [] };
        const writer = writers[random(writers.length)] ?? writers[0];
        const context = contextOf(seed, `command ${from + index}`, channel.organizationId);
        if (random(15) === 0) return writer.channels.commands.update(context, channel.id, { name: `${from}` });
        return playOne(writer.interactions.commands, context, channel, random);
      }),
    );
    accepted += results.filter(({ ok }) => ok).length;
  }
  return { accepted, refused: commands - accepted };
}

function contextOf(seed: number, name: string, organizationId: string): CommandContext {
  return {
    commandId: derivedId(NAMESPACE, `${seed}/${name}`),
    organizationId,
    actor: { type: 'service', id: 'history' },
    at: new Date(Date.UTC(2026, 0, 1)).toISOString(),
  };
}

function createChannel(channels: ChannelCommands, context: CommandContext): Promise<{ readonly ok: boolean }> {
  return channels.create(context, {
    id: context.commandId,
    type: 'websocket',
    channelType: 'chat',
    name: 'With interactions',
    participants: [],
    metaData: null,
    source: null,
    agentInvocationBehavior: null,
    parentChannelId: null,
    originMessageId: null,
  });
}

function playOne(
  interactions: InteractionCommands,
  context: CommandContext,
  channel: PlayedChannel,
  random: Random,
): Promise<{ readonly ok: boolean }> {
  const content = [{ type: 'text', text: `${random(1_000)} – ü 🎈` }];
  const place = { channelId: channel.id, sequence: anySequence(channel, random) };
  switch (random(8)) {
    case 0:
      return interactions.append(context, place, content);
    case 1:
      return interactions.complete(context, place, random(2) === 0 ? null : content);
    case 2:
      return interactions.fail(context, place, 'because');
    default:
      return post(interactions, context, { channel, content, random });
  }
}

/** Often one that exists, and often one of those that are incomplete. */
function anySequence({ spans }: PlayedChannel, random: Random): ChannelSequence {
  return sequenceOf(streamRevision(1 + random(spans.length + 3)));
}

function post(
  interactions: InteractionCommands,
  context: CommandContext,
  { channel, content, random }: { channel: PlayedChannel; content: { type: string }[]; random: Random },
): Promise<{ readonly ok: boolean }> {
  const { spans } = channel;
  const isTaken = spans.length > 0 && random(12) === 0;
  const spanId = (isTaken ? spans[random(spans.length)] : undefined) ?? `span-${context.commandId.slice(0, 13)}`;
  const parentSpanId = random(3) === 0 ? null : (spans[random(Math.max(1, spans.length))] ?? null);
  if (!isTaken) spans.push(spanId);
  const interaction = {
    participant: { type: 'system' },
    content,
    contentRole: ROLES[random(ROLES.length)] ?? 'user_message',
    complete: random(2) === 0,
    metadata: random(2) === 0 ? null : { n: random(9) },
    invocationConfig: null,
    turnId: random(3) === 0 ? `turn-${random(5)}` : null,
    spanId,
    parentSpanId,
    organizationApplication: null,
  };
  return interactions.post(context, channel.id, interaction, { spanIsNew: !isTaken && random(2) === 0 });
}
