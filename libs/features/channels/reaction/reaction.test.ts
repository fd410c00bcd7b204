import { describe, expect, it } from 'vitest';

import { type ChannelEvent, channelFold, type ChannelState } from '../channel/channel.ts';
import { foldEvents } from '#libs/kernel/decider.ts';
import { type ChannelSequence, streamRevision } from '#libs/kernel/event.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';

import {
  decideDismiss,
  decideReact,
  decideReceipt,
  decideWithdraw,
  type KnownInteraction,
  MAX_MARKS,
  MAX_WITHDRAWN,
  reactionCodec,
  type ReactionSubject,
} from './reaction.ts';
import samples from './reaction.events.samples.json' with { type: 'json' };

describeStoredEvents('reactions', reactionCodec, samples);

const sequence = 2 as ChannelSequence;
const organizationId = 'org-1';
const created: ChannelEvent = {
  type: 'ChannelCreated.v1',
  data: {
    id: 'channel-1',
    type: 'websocket',
    channelType: 'chat',
    name: 'Support',
    participants: [],
    metaData: null,
    source: null,
    agentInvocationBehavior: null,
    parentChannelId: null,
    originMessageId: null,
  },
};
const joined: ChannelEvent = {
  type: 'ParticipantAdded.v1',
  data: {
    participant: {
      type: 'agent',
      participantId: 'participant-1',
      agentId: 'agent-1',
      name: 'Otto',
      description: '',
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
  },
};
const archived: ChannelEvent = { type: 'ChannelArchived.v1', data: {} };

function given(...events: ChannelEvent[]): ChannelState {
  const metadata = {
    at: '2026-01-31T12:00:00.000Z',
    organizationId,
    actor: { type: 'user' as const, id: 'user-1' },
    commandId: 'command-1',
    $correlationId: 'command-1',
    $causationId: 'command-1',
  };
  const stored = events.map((event, at) => ({ ...event, id: `event-${at}`, revision: streamRevision(at), metadata }));
  return foldEvents(channelFold, null, stored);
}

const ofUser: KnownInteraction = {
  target: { role: 'user', senderId: 'user-1' },
  senderUserId: 'user-1',
  turnId: 'turn-1',
};
const ofAgent: KnownInteraction = {
  target: { role: 'assistant', senderId: 'agent-1' },
  senderUserId: null,
  turnId: 'turn-1',
};
const at = (interaction: KnownInteraction | null, counts: Partial<ReactionSubject> = {}): ReactionSubject => ({
  organizationId,
  sequence,
  interaction,
  marks: 0,
  withdrawn: 0,
  ...counts,
});

const ada = { type: 'user' as const, id: 'user-1', name: 'Ada' };
const agent = { type: 'agent' as const, id: 'agent-1', name: null };
const current = { addedSequence: 4 as ChannelSequence, name: 'Ada before' };
const noEvents = { ok: true, events: [] };

describe('reacting', () => {
  it('records the current name of the reactor and the target', () => {
    expect(decideReact(given(created), at(ofAgent), { emoji: '👍', reactor: ada, current: null })).toEqual({
      ok: true,
      events: [
        {
          type: 'ReactionAdded.v1',
          data: { sequence, emoji: '👍', reactor: ada, target: { role: 'assistant', senderId: 'agent-1' } },
        },
      ],
    });
  });

  it('with the same emoji again yields no events', () => {
    expect(decideReact(given(created), at(ofUser), { emoji: '👍', reactor: ada, current })).toEqual(noEvents);
  });

  it('as an agent without a name uses its name in the channel', () => {
    const decision = decideReact(given(created, joined), at(ofUser), { emoji: '👍', reactor: agent, current: null });
    expect(decision).toMatchObject({ events: [{ data: { reactor: { id: 'agent-1', name: 'Otto' } } }] });
  });

  it('as an agent outside of the channel has no name', () => {
    const decision = decideReact(given(created), at(ofUser), { emoji: '👍', reactor: agent, current: null });
    expect(decision).toMatchObject({ events: [{ data: { reactor: { name: null } } }] });
  });
});

describe('an interaction at its limits', () => {
  const full = { ok: false, rejection: { reason: 'too_many_reactions' } };
  const react = (counts: Partial<ReactionSubject>, isCurrent = false) =>
    decideReact(given(created), at(ofUser, counts), {
      emoji: '👍',
      reactor: ada,
      current: isCurrent ? current : null,
    });

  it('accepts no more reactions and receipts', () => {
    expect(react({ marks: MAX_MARKS - 1 })).toMatchObject({ ok: true });
    expect(react({ marks: MAX_MARKS })).toEqual(full);
    const receipt = { agentId: 'agent-1', recorded: false };
    expect(decideReceipt(given(created), at(ofUser, { marks: MAX_MARKS - 1 }), receipt)).toMatchObject({ ok: true });
    expect(decideReceipt(given(created), at(ofUser, { marks: MAX_MARKS }), receipt)).toEqual(full);
  });

  it('accepts no more reactions after too many were removed', () => {
    expect(react({ withdrawn: MAX_WITHDRAWN - 1 })).toMatchObject({ ok: true });
    expect(react({ withdrawn: MAX_WITHDRAWN })).toEqual(full);
  });

  it('still accepts repetitions and removals', () => {
    const counts = { marks: MAX_MARKS, withdrawn: MAX_WITHDRAWN };
    expect(react(counts, true)).toEqual(noEvents);
    const again = { agentId: 'agent-1', recorded: true };
    expect(decideReceipt(given(created), at(ofUser, counts), again)).toEqual(noEvents);
    const removal = decideWithdraw(given(created), at(ofUser, counts), { emoji: '👍', reactor: ada, current });
    expect(removal).toMatchObject({ ok: true, events: [{ type: 'ReactionRemoved.v1' }] });
  });
});

describe('removing a reaction', () => {
  it('records the reaction as it was added', () => {
    const decision = decideWithdraw(given(created), at(ofUser), { emoji: '👍', reactor: ada, current });
    expect(decision).toEqual({
      ok: true,
      events: [
        {
          type: 'ReactionRemoved.v1',
          data: {
            sequence,
            emoji: '👍',
            reactor: { ...ada, name: 'Ada before' },
            target: { role: 'user', senderId: 'user-1' },
            addedAt: 4,
          },
        },
      ],
    });
  });

  it('yields no events without a reaction', () => {
    const decision = decideWithdraw(given(created), at(ofUser), { emoji: '👍', reactor: ada, current: null });
    expect(decision).toEqual(noEvents);
  });
});

describe('a read receipt', () => {
  it('is recorded once for each agent', () => {
    const first = decideReceipt(given(created), at(ofUser), { agentId: 'agent-1', recorded: false });
    expect(first).toEqual({
      ok: true,
      events: [{ type: 'ReadReceiptRecorded.v1', data: { sequence, agentId: 'agent-1', turnId: 'turn-1' } }],
    });
    expect(decideReceipt(given(created), at(ofUser), { agentId: 'agent-1', recorded: true })).toEqual(noEvents);
  });

  it('is rejected for messages that no user sent', () => {
    const decision = decideReceipt(given(created), at(ofAgent), { agentId: 'agent-1', recorded: false });
    expect(decision).toEqual({ ok: false, rejection: { reason: 'not_a_user_message' } });
  });
});

describe('dismissing the mention-invite prompt', () => {
  it('is accepted from the sender, once', () => {
    const own = decideDismiss(given(created), at(ofUser), { userId: 'user-1', dismissed: false });
    expect(own).toEqual({
      ok: true,
      events: [{ type: 'MentionInvitePromptDismissed.v1', data: { sequence, userId: 'user-1' } }],
    });
    expect(decideDismiss(given(created), at(ofUser), { userId: 'user-1', dismissed: true })).toEqual(noEvents);
  });

  it.each([
    ['another user', 'user-2', ofUser],
    ['a service', null, ofUser],
    ['a service, for a message that no user sent', null, ofAgent],
  ])('is rejected for %s', (_caller, userId, interaction) => {
    const decision = decideDismiss(given(created), at(interaction), { userId, dismissed: false });
    expect(decision).toEqual({ ok: false, rejection: { reason: 'not_the_sender' } });
  });
});

describe('every command on an interaction', () => {
  const decisions = (context: ChannelState, subject: ReactionSubject) => [
    decideReact(context, subject, { emoji: '👍', reactor: ada, current: null }),
    decideWithdraw(context, subject, { emoji: '👍', reactor: ada, current }),
    decideReceipt(context, subject, { agentId: 'agent-1', recorded: false }),
    decideDismiss(context, subject, { userId: 'user-1', dismissed: false }),
  ];
  const refused = (reason: string) => Array.from({ length: 4 }, () => ({ ok: false, rejection: { reason } }));

  it("is rejected as not_found for a missing interaction or channel, and for another organization's", () => {
    expect(decisions(given(created), at(null))).toEqual(refused('not_found'));
    expect(decisions(given(), at(ofUser))).toEqual(refused('not_found'));
    expect(decisions(given(created), { ...at(ofUser), organizationId: 'org-2' })).toEqual(refused('not_found'));
  });

  it('is rejected in an archived channel', () => {
    expect(decisions(given(created, archived), at(ofUser))).toEqual(refused('archived'));
  });
});
