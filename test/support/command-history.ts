/**
 * Random histories of commands on channels and their contents, which fast-check can shrink, and the code that plays
 * them through several gateways. Commands refer to entities that exist by then or never existed, so some are refused.
 */
import fc from 'fast-check';

import type { Channels } from '#libs/features/channels/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import { type ChannelSequence, sequenceOf, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { derivedId, newId } from '#libs/kernel/ids.ts';
import type { Features } from '#services/features.ts';

import { PLAIN_CHANNEL } from './commands.ts';
import { ADA, EMOJIS, REACTORS } from './channel-with-a-past.ts';

const ROLES = ['user_message', 'agent_response', 'tool_call'] as const;
const CHANNELS = 3;
type Participant = Parameters<Channels['addParticipant']>[2];
const PARTICIPANTS: readonly Participant[] = [
  { type: 'authenticated_user', participantId: 'p-1', userId: ADA, displayName: 'Ada', imageUrl: null, isOwner: true },
  {
    type: 'authenticated_user',
    participantId: 'p-2',
    userId: 'bob',
    displayName: 'Bob',
    imageUrl: null,
    isOwner: false,
  },
  {
    type: 'agent',
    participantId: 'p-3',
    agentId: 'agent-2',
    name: 'Named in the channel',
    description: '',
    organization: null,
    isActive: true,
    imageUrl: null,
    personality: '',
    website: null,
    agentCapabilities: null,
    agentUrl: null,
    agentAddress: null,
    agentHandle: null,
    isVerified: false,
    allowHtmlResponses: false,
  },
];
const SENDERS = [
  { type: 'system' },
  { type: 'authenticated_user', user_id: ADA },
  { type: 'agent', agent_id: 'agent-1' },
  { type: 'non_authenticated_user', user_metadata: null },
] as const;

const pick = fc.nat({ max: 40 });
const emoji = fc.constantFrom(...EMOJIS);
const reactor = fc.constantFrom(...REACTORS);
const text = fc.string({ unit: 'grapheme', maxLength: 8 });
const target = { target: pick };
const sometimes = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
const member = fc.constantFrom(...PARTICIPANTS);
const jsonMap = fc.option(fc.dictionary(fc.constantFrom('b', 'a', '1', 'content', 'complete'), text, { maxKeys: 3 }));
const details = fc.record({ metadata: jsonMap, invocationConfig: jsonMap });

/** Numbers select among existing spans and interactions. Simplest kinds first, so that histories shrink to them. */
const command = fc.oneof(
  { withCrossShrink: true },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      text,
      complete: fc.boolean(),
      parent: fc.option(pick),
      takenSpan: sometimes(pick),
      turn: fc.option(fc.constantFrom('turn-1', 'turn-2')),
      role: fc.constantFrom(...ROLES),
      sender: fc.constantFrom(...SENDERS),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('append' as const), text, ...target }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('complete' as const), text: fc.option(text), details, ...target }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const), text, ...target }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('react' as const), reactor, emoji, ...target }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('withdraw' as const), reactor, emoji, ...target }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('receipt' as const), agent: fc.constantFrom('agent-1', 'b'), ...target }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('dismiss' as const), ...target }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('rename' as const), text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('describe' as const), text }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('join' as const), member }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), member }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

export interface Step {
  readonly command: Command;
  readonly channel: number;
  /** Index of the gateway that gets the command. */
  readonly writer: number;
  /** Whether it is sent together with the previous command. */
  readonly atOnce: boolean;
  /** Whether it is sent again, to another gateway, like a retry of a caller that got no answer. */
  readonly again: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  command,
  // Most commands go to one channel at the same time, so that two gateways conflict there.
  channel: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat({ max: CHANNELS - 1 }) }),
  writer: fc.nat({ max: 1 }),
  atOnce: fc.nat({ max: 3 }).map((one) => one > 0),
  again: sometimes(fc.constant(true)).map((one) => one === true),
});

export interface CommandHistory {
  readonly steps: readonly Step[];
  /** The channel that is archived at the end; null for none. */
  readonly archived: number | null;
}

export function commandHistories({ maxSteps = 60, minSteps = 0 } = {}): fc.Arbitrary<CommandHistory> {
  return fc.record({
    steps: fc.array(step, { minLength: minSteps, maxLength: maxSteps, size: 'max' }),
    archived: fc.option(fc.nat({ max: CHANNELS - 1 }), { freq: 2 }),
  });
}

export interface PlayedChannel {
  readonly organizationId: string;
  readonly channelId: string;
}

interface Played extends PlayedChannel {
  /** All spans that were requested, whether they were created or not. */
  readonly spans: string[];
  /** Sequences of the posted interactions. */
  readonly posted: ChannelSequence[];
}

type Outcome = { readonly ok: true; readonly revision: StreamRevision } | { readonly ok: false };
type Request = (features: Features, context: CommandContext) => Promise<Outcome>;

/** Runs some work, and again after a transient fault. The work gets whether it may have been done before. */
export type Persist = <T>(work: (again: boolean) => Promise<T>) => Promise<T>;

/**
 * Plays a history in new channels of two new organizations.
 * @returns the channels, and the count of refused commands
 */
export async function playHistory(
  writers: readonly [Features, ...Features[]],
  { steps, archived }: CommandHistory,
  persist: Persist = (work) => work(false),
): Promise<{ readonly channels: readonly PlayedChannel[]; readonly refused: number }> {
  const startedMs = Date.now();
  const organizations = [newId(), newId()] as const;
  const channels = await Promise.all(
    Array.from({ length: CHANNELS }, (_, index) => create(writers[0], organizations[index % 2] ?? '', persist)),
  );
  let refused = 0;
  const requests = new Map<Step, Request>();
  const send = async (one: Step, writer: number, repeatedSinceMs?: number): Promise<void> => {
    const channel = channels[one.channel];
    if (channel === undefined) return;
    const request = requests.get(one) ?? requestOf(channel, one.command);
    requests.set(one, request);
    const context = contextOf(channel, steps.indexOf(one), one.command);
    const result = await persist((again) => {
      const sinceMs = again ? startedMs : repeatedSinceMs;
      return request(writers[writer % writers.length] ?? writers[0], { ...context, repeatedSinceMs: sinceMs });
    });
    if (!result.ok) refused += 1;
    else if (one.command.kind === 'post') channel.posted.push(sequenceOf(result.revision));
  };
  for (const group of groupsOf(steps)) {
    await Promise.all(group.map((one) => send(one, one.writer)));
    for (const one of group.filter(({ again }) => again)) await send(one, one.writer + 1, startedMs);
  }
  const last = archived === null ? undefined : channels[archived];
  if (last) {
    const context = contextOf(last, steps.length);
    await persist((again) => {
      const repeatedSinceMs = again ? startedMs : undefined;
      return writers[0].channels.archive({ ...context, repeatedSinceMs }, last.channelId);
    });
  }
  return { channels, refused };
}

/** Steps that are sent together. */
function groupsOf(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = [];
  for (const one of steps) {
    const group = groups.at(-1);
    if (one.atOnce && group !== undefined) group.push(one);
    else groups.push([one]);
  }
  return groups;
}

function contextOf({ organizationId, channelId }: PlayedChannel, index: number, command?: Command): CommandContext {
  const commandId = derivedId(channelId, `command ${index}`);
  const actor =
    command?.kind === 'dismiss' ? { type: 'user' as const, id: ADA } : { type: 'service' as const, id: 'h' };
  const at = new Date(Date.UTC(2026, 0, 1) + index * 1_234).toISOString();
  return { commandId, organizationId, actor, at, idempotencyKey: commandId };
}

async function create(features: Features, organizationId: string, persist: Persist): Promise<Played> {
  const channelId = newId();
  const played = { organizationId, channelId, spans: [], posted: [] };
  const channel = { id: channelId, ...PLAIN_CHANNEL, name: 'With a history' };
  const startedMs = Date.now();
  await persist((again) => {
    const context = { ...contextOf(played, -1), repeatedSinceMs: again ? startedMs : undefined };
    return features.channels.create(context, channel);
  });
  return played;
}

/** Chooses the target of the command when it is created, so that a retry sends the same command. */
function requestOf(channel: Played, one: Command): Request {
  const { channelId } = channel;
  if (one.kind === 'post') return postOf(channel, one);
  if (!('target' in one)) return requestOnChannel(channelId, one);
  const place = { channelId, sequence: anyOf(channel.posted, one.target) ?? sequenceOf(streamRevision(0)) };
  return ({ channels: { interactions, reactions } }, context) => {
    switch (one.kind) {
      case 'append':
        return interactions.append(context, place, contentOf(one.text), 'operator');
      case 'complete':
        return interactions.complete(
          context,
          place,
          one.text === null ? null : contentOf(one.text),
          'operator',
          one.details,
        );
      case 'fail':
        return interactions.fail(context, place, one.text);
      case 'react':
        return reactions.react(context, place, one.reactor, one.emoji);
      case 'withdraw':
        return reactions.withdraw(context, place, one.reactor, one.emoji);
      case 'receipt':
        return reactions.recordReceipt(context, place, one.agent);
      case 'dismiss':
        return reactions.dismissMentionInvitePrompt(context, place);
      default:
        return unreachable(one);
    }
  };
}

/** One item, or none for an empty text. */
function contentOf(words: string): { readonly type: string; readonly text: string }[] {
  return words === '' ? [] : [{ type: 'text', text: words }];
}

type OnChannel = Extract<Command, { kind: 'rename' | 'describe' | 'join' | 'leave' }>;

function requestOnChannel(channelId: string, one: OnChannel): Request {
  return ({ channels: commands }, context) => {
    switch (one.kind) {
      case 'rename':
        return commands.update(context, channelId, { name: one.text });
      case 'describe':
        return commands.update(context, channelId, { metaData: { text: one.text }, name: `About ${one.text}` });
      case 'join':
        return commands.addParticipant(context, channelId, one.member);
      case 'leave':
        return commands.removeParticipant(context, channelId, one.member.participantId);
      default:
        return unreachable(one);
    }
  };
}

function postOf({ channelId, spans }: Played, one: Extract<Command, { kind: 'post' }>): Request {
  const taken = one.takenSpan === null ? undefined : anyOf(spans, one.takenSpan);
  const parentSpanId = one.parent === null ? null : (anyOf([...spans, 'missing'], one.parent) ?? null);
  const spanId = taken ?? newId();
  if (taken === undefined) spans.push(spanId);
  const interaction = {
    participant: one.sender,
    content: contentOf(one.text),
    contentRole: one.role,
    complete: one.complete,
    metadata: one.turn === null ? null : { turn: one.turn },
    invocationConfig: null,
    turnId: one.turn,
    spanId,
    parentSpanId,
    organizationApplication: null,
  };
  const spanIsNew = taken === undefined && one.parent === null;
  return ({ channels }, context) => channels.interactions.post(context, channelId, interaction, { spanIsNew });
}

function anyOf<T>(all: readonly T[], at: number): T | undefined {
  return all[at % Math.max(1, all.length)];
}
