/** A channel with events of every type, and a recorder of the messages on its topic. */
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { derivedId, newId } from '#libs/kernel/ids.ts';
import { decodeLiveMessage, channelTopic } from '#libs/platform/live/index.ts';
import type { TopicSubscriptions } from '#libs/platform/redis/index.ts';
import type { Features } from '#services/features.ts';

import { randomFrom } from '../channel-history.ts';
import { eventually } from '../eventually.ts';

export interface LiveChannel {
  readonly organizationId: string;
  readonly channelId: string;
}

type Random = (below: number) => number;

const ROLES = ['user_message', 'agent_response', 'agent_reasoning', 'tool_call'] as const;
const SENDERS = [
  { type: 'authenticated_user', user_id: 'user-1' },
  { type: 'agent', agent_id: 'agent-1' },
  { type: 'system' },
];
const NAMESPACE = '0192f5b2-3c68-7aa4-9f5c-2f5a8b0f3a13';

export async function newChannel(features: Features): Promise<LiveChannel> {
  const [organizationId, channelId] = [newId(), newId()];
  const created = await createChannel(features, { organizationId, channelId });
  if (!created) throw new Error('the channel was not created');
  return { organizationId, channelId };
}

export async function createChannel(features: Features, { organizationId, channelId }: LiveChannel): Promise<boolean> {
  const { ok } = await features.channels.create(contextOf(organizationId, channelId, 0), {
    id: channelId,
    type: 'websocket',
    channelType: 'chat',
    name: 'A lively channel – ü 🎈',
    participants: [],
    metaData: { 2: 'two', 1: 'one', z: { nested: [1, null] } },
    source: null,
    agentInvocationBehavior: null,
    parentChannelId: null,
    originMessageId: null,
  });
  return ok;
}

export function contextOf(organizationId: string, commandId: string, index: number): CommandContext {
  return {
    commandId,
    organizationId,
    // Sends some of the messages, so that there are prompts to dismiss.
    actor: { type: 'user', id: 'user-1' },
    at: new Date(Date.UTC(2026, 0, 1) + index * 1_000).toISOString(),
  };
}

/**
 * Sends random commands of every kind about one channel, three at a time, each through any of the writers.
 *
 * @returns how many were accepted
 */
export async function live(
  writers: readonly [Features, ...Features[]],
  channel: LiveChannel,
  { seed, commands }: { readonly seed: number; readonly commands: number },
): Promise<number> {
  const random = randomFrom(seed);
  const acting: Acting = { ...channel, random, head: 1, spans: [], reactions: [] };
  let accepted = 0;
  for (let index = 0; index < commands; index += 3) {
    const results = await Promise.all(
      [index, index + 1, index + 2].map((one) => {
        const context = contextOf(
          channel.organizationId,
          derivedId(NAMESPACE, `${channel.channelId}/${seed}/${one}`),
          one,
        );
        const writer = writers[random(writers.length)] ?? writers[0];
        return act(writer, context, acting);
      }),
    );
    for (const result of results) {
      if (!result.ok) continue;
      accepted++;
      acting.head = Math.max(acting.head, result.revision + 1);
    }
  }
  return accepted;
}

type Acting = LiveChannel & {
  readonly random: Random;
  /** The newest known sequence. */
  head: number;
  readonly spans: string[];
  /** Withdrawals of requested reactions, including those that were refused. */
  readonly reactions: ((context: CommandContext) => Promise<Outcome>)[];
};

type Outcome = { readonly ok: true; readonly revision: number } | { readonly ok: false };

function act(features: Features, context: CommandContext, channel: Acting): Promise<Outcome> {
  const { random, head } = channel;
  const dice = random(20);
  if (dice < 3) return changeChannel(features, context, channel.channelId, random);
  const commands = features.channels.interactions;
  // Most commands concern a recent interaction.
  const sequence = Math.max(1, head - random(12)) as never;
  const target = { channelId: channel.channelId, sequence };
  const content = [{ type: 'text', text: `${random(1_000)} "quoted"\n\u2028 – ü 🎈` }];
  if (dice < 9) return post(features, context, channel);
  if (dice < 12) return commands.append(context, target, content, 'operator');
  if (dice < 14) return commands.complete(context, target, random(2) === 0 ? null : content, 'operator');
  if (dice < 15) return commands.fail(context, target, 'because of ",\\"data\\":null}');
  return addTo(features, context, target, channel);
}

function changeChannel(
  { channels }: Features,
  context: CommandContext,
  channelId: string,
  random: Random,
): Promise<Outcome> {
  const commands = channels;
  const participantId = `participant-${random(4)}`;
  switch (random(5)) {
    case 0:
      return commands.update(context, channelId, { name: `Renamed ${random(50)}` });
    case 1:
      // Two events of one command.
      return commands.update(context, channelId, {
        metaData: { n: random(9) },
        agentInvocationBehavior: random(2) === 0 ? null : 'all_messages',
      });
    case 2:
      return commands.removeParticipant(context, channelId, participantId);
    case 3:
      return commands.addParticipant(context, channelId, {
        type: 'authenticated_user',
        participantId,
        userId: `user-${random(4)}`,
        displayName: 'Ada',
        imageUrl: null,
        isOwner: true,
      });
    default:
      return commands.addParticipant(context, channelId, {
        type: 'external_agent',
        participantId,
        agentMetadata: null,
      });
  }
}

function post({ channels }: Features, context: CommandContext, { channelId, random, spans }: Acting): Promise<Outcome> {
  const spanId = `span-${context.commandId}`;
  const parent = spans[Math.max(0, spans.length - 1 - random(9))] ?? null;
  if (random(2) === 0) spans.push(spanId);
  return channels.interactions.post(
    context,
    channelId,
    {
      participant: SENDERS[random(SENDERS.length)] ?? { type: 'system' },
      content: [{ type: 'text', text: `text ${random(1_000)}` }],
      contentRole: ROLES[random(ROLES.length)] ?? 'user_message',
      complete: random(3) > 0,
      metadata: random(2) === 0 ? null : { 10: 'ten', 9: 'nine' },
      invocationConfig: null,
      turnId: null,
      spanId,
      parentSpanId: random(3) === 0 ? parent : null,
      organizationApplication: null,
    },
    { spanIsNew: false },
  );
}

function addTo(
  { channels: { reactions: commands } }: Features,
  context: CommandContext,
  target: { readonly channelId: string; readonly sequence: never },
  { random, reactions: asked }: Acting,
): Promise<Outcome> {
  const type = random(2) === 0 ? ('user' as const) : ('agent' as const);
  const reactor = { type, id: `${type}-${random(2)}`, name: random(2) === 0 ? null : 'Otto' };
  const emoji = random(2) === 0 ? '👍' : '👩🏽‍🚀';
  switch (random(6)) {
    case 0:
    case 1:
      return asked.pop()?.(context) ?? commands.withdraw(context, target, reactor, emoji);
    case 2:
      return commands.recordReceipt(context, target, `agent-${random(2)}`);
    case 3:
      return commands.dismissMentionInvitePrompt(context, target);
    default:
      asked.push((later) => commands.withdraw(later, target, reactor, emoji));
      return commands.react(context, target, reactor, emoji);
  }
}

/** Messages published on a channel's topic after the subscription. */
export interface Published {
  /** Frames by sequence, with each publication of a sequence. */
  readonly frames: ReadonlyMap<number, readonly { readonly json: string; readonly flags: number }[]>;
  /** Sequences of head notices. */
  readonly heads: readonly number[];
  stop(): void;
}

export async function recordTopic(
  topics: TopicSubscriptions,
  { organizationId, channelId }: LiveChannel,
): Promise<Published> {
  const frames = new Map<number, { json: string; flags: number }[]>();
  const heads: number[] = [];
  const subscription = topics.subscribe(channelTopic(organizationId, channelId), {
    onMessage(message) {
      for (const item of decodeLiveMessage(message)) {
        if (item.kind === 'head') heads.push(item.sequence);
        if (item.kind !== 'event') continue;
        const known = frames.get(item.sequence) ?? [];
        frames.set(item.sequence, [...known, { json: item.json.toString(), flags: item.flags }]);
      }
    },
    onListening: () => undefined,
    onInterrupted: () => undefined,
  });
  await eventually(() => subscription.listening);
  return { frames, heads, stop: () => subscription.stop() };
}
