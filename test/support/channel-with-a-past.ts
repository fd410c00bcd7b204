import { sequenceOf } from '#libs/kernel/event.ts';
import { derivedId, newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { Features } from '#services/features.ts';

import { randomFrom } from './channel-history.ts';

const NAMESPACE = '0192f5b2-3c68-7aa4-9f5c-2f5a8b0f3a12';
const ROLES = ['user_message', 'agent_response', 'agent_reasoning', 'tool_call'] as const;

export interface PlayedChannel {
  readonly organizationId: string;
  readonly channelId: string;
}

interface Play extends PlayedChannel {
  readonly features: Features;
  readonly random: (below: number) => number;
  readonly spans: string[];
  readonly open: number[];
  /** Sequences of everything posted. */
  readonly posted: number[];
}

/** Posts half of the interactions, reacts, and alone dismisses prompts. */
export const ADA = 'ada';
export const REACTORS = [
  { type: 'user', id: ADA, name: 'Ada' },
  { type: 'user', id: 'bob', name: 'Bob' },
  { type: 'agent', id: 'agent-1', name: 'Otto' },
  { type: 'agent', id: 'agent-2', name: null },
] as const;
export const EMOJIS = ['👍', '👩🏽‍🚀'] as const;

/**
 * Sends random commands to one new channel: changes of the channel, interactions posted whole, in parts and in trees,
 * and reactions, receipts and dismissals. Their times come from clocks that differ by up to `skewMs`.
 */
export async function playInteractions(
  features: Features,
  { seed, commands, skewMs }: { readonly seed: number; readonly commands: number; readonly skewMs: number },
): Promise<PlayedChannel> {
  const random = randomFrom(seed);
  const organizationId = newId();
  const contextOf = (index: number): CommandContext => ({
    commandId: index === 0 ? newId() : derivedId(NAMESPACE, `${organizationId}/${index}`),
    organizationId,
    actor: { type: 'service', id: 'history' },
    at: new Date(Date.UTC(2026, 0, 1) + index * 1_000 + random(skewMs + 1)).toISOString(),
  });
  const channelId = await create(features, contextOf(0));
  const play: Play = { features, organizationId, channelId, random, spans: [], open: [], posted: [] };
  for (let index = 1; index < commands; index++) {
    // Long stretches in which the channel itself does not change.
    const isAboutChannel = random(100) < (Math.floor(index / 90) % 2 === 0 ? 25 : 0);
    if (isAboutChannel) await changeChannel(play, contextOf(index));
    else if (random(4) === 0) await annotate(play, contextOf(index));
    else await changeInteractions(play, contextOf(index));
  }
  return { organizationId, channelId };
}

async function create({ channels }: Features, context: CommandContext): Promise<string> {
  const id = context.commandId;
  await channels.create(context, {
    id,
    type: 'websocket',
    channelType: 'chat',
    name: 'Channel with a past',
    participants: [],
    metaData: null,
    source: null,
    agentInvocationBehavior: null,
    parentChannelId: null,
    originMessageId: null,
  });
  return id;
}

async function changeChannel({ features, channelId, random }: Play, context: CommandContext): Promise<void> {
  const commands = features.channels;
  if (random(3) > 0) {
    await commands.update(context, channelId, { name: `Renamed ${random(50)}`, metaData: { n: random(9) } });
    return;
  }
  const participant = { type: 'external_agent', participantId: context.commandId, agentMetadata: null } as const;
  await commands.addParticipant(context, channelId, participant);
}

async function changeInteractions(play: Play, context: CommandContext): Promise<void> {
  const { open, random } = play;
  const at = random(Math.max(1, open.length));
  const sequence = open[at];
  if (sequence === undefined || random(2) === 0) return post(play, context);
  const commands = play.features.channels.interactions;
  const place = { channelId: play.channelId, sequence: sequence as never };
  const what = random(6);
  if (what < 3) {
    await commands.append(context, place, [{ type: 'text', text: `and ${random(100)}` }], 'operator');
    return;
  }
  open.splice(at, 1);
  if (what < 5) {
    const content = what === 3 ? null : [{ type: 'text', text: 'in its place' }];
    await commands.complete(context, place, content, 'operator', {
      metadata: metadataOf(play),
      invocationConfig: metadataOf(play),
    });
  } else await commands.fail(context, place, `reason ${random(9)}`);
}

function metadataOf({ random }: Pick<Play, 'random'>): Record<string, unknown> | null {
  return random(2) === 0 ? null : { n: random(9) };
}

/** Mostly one of the newest interactions, so that additions are often taken back. */
async function annotate({ features, channelId, random, posted }: Play, context: CommandContext): Promise<void> {
  const sequence = posted[posted.length - 1 - random(Math.min(posted.length, random(5) === 0 ? 50 : 3))];
  if (sequence === undefined) return;
  const commands = features.channels.reactions;
  const place = { channelId, sequence: sequence as never };
  const reactor = REACTORS[random(REACTORS.length)] ?? REACTORS[0];
  const emoji = EMOJIS[random(EMOJIS.length)] ?? EMOJIS[0];
  const what = random(8);
  if (what < 3) await commands.react(context, place, reactor, emoji);
  else if (what < 6) await commands.withdraw(context, place, reactor, emoji);
  else if (what < 7) await commands.recordReceipt(context, place, `agent-${random(3)}`);
  else await commands.dismissMentionInvitePrompt({ ...context, actor: { type: 'user', id: ADA } }, place);
}

async function post(
  { features, channelId, random, spans, open, posted }: Play,
  context: CommandContext,
): Promise<void> {
  const complete = random(3) > 0;
  const spanId = context.commandId;
  const result = await features.channels.interactions.post(
    context,
    channelId,
    {
      participant: random(2) === 0 ? { type: 'system' } : { type: 'authenticated_user', user_id: ADA },
      content: [{ type: 'text', text: `text ${random(1_000)} ü 🎈` }],
      contentRole: ROLES[random(ROLES.length)] ?? 'user_message',
      complete,
      metadata: metadataOf({ random }),
      invocationConfig: metadataOf({ random }),
      turnId: null,
      spanId,
      parentSpanId: random(2) === 0 ? null : (spans[random(Math.max(1, spans.length))] ?? null),
      organizationApplication: null,
    },
    { spanIsNew: true },
  );
  // A post is refused when the tree is too deep or too many interactions are open.
  if (!result.ok) return;
  spans.push(spanId);
  posted.push(sequenceOf(result.revision));
  if (!complete) open.push(sequenceOf(result.revision));
}
