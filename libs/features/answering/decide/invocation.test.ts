import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';
import { logMetadata } from '#test/support/log-events.ts';

import {
  asksRelevance,
  type Behavior,
  BY_WORDS,
  decideInvocation,
  type InvocableAgent,
  invocationCodec,
  MAX_HOPS,
  type Message,
} from './invocation.ts';
import samples from './invocation.events.samples.json' with { type: 'json' };

describeStoredEvents('invocations', invocationCodec, samples, {
  'AgentInvoked.v1': { type: 'AgentInvoked.v2', data: { ...samples['AgentInvoked.v1'], relevance: null } },
  'AgentWithheld.v1': { type: 'AgentWithheld.v3', data: { ...samples['AgentWithheld.v1'], relevance: null } },
  'AgentWithheld.v2': { type: 'AgentWithheld.v3', data: samples['AgentWithheld.v2'] },
});

it('decisions on relevance before a model made them were made by words', () => {
  for (const [type, reason] of [
    ['AgentInvoked.v1', 'relevant'],
    ['AgentWithheld.v1', 'irrelevant'],
  ] as const) {
    const place = { stream: 'invocation-1', revision: streamRevision(0), position: null, id: 'event-1', createdMs: 0 };
    const data = { ...samples[type], reason };
    const decoded = invocationCodec.decode({ ...place, type, data, metadata: logMetadata('command-1') });
    expect(decoded?.data).toEqual({ ...data, relevance: BY_WORDS });
  }
});

const user: Message = {
  sender: { type: 'authenticated_user', agentId: null },
  mentions: new Set(),
  withheld: new Set(),
  depth: 0,
};
const ada: InvocableAgent = { id: 'ada', isActive: true, isPersonal: false };
const mention = new Set(['ada']);
const BEHAVIORS: readonly Behavior[] = [
  null,
  'at_mentions_only',
  'all_messages',
  'all_messages_personal_agent',
  'intelligent',
];

const reason = (message: Partial<Message>, agent: Partial<InvocableAgent>, behavior: Behavior, isRelevant = false) =>
  decideInvocation({ ...user, ...message }, { ...ada, ...agent }, { behavior, isRelevant }).reason;

describe('a message of a user', () => {
  it.each([
    [null, 'not_mentioned'],
    ['at_mentions_only', 'not_mentioned'],
    ['all_messages', 'all_messages'],
    ['all_messages_personal_agent', 'not_personal'],
    ['intelligent', 'irrelevant'],
  ] as const)('invokes an agent that it does not mention as %s has it', (behavior, expected) => {
    expect(reason({}, {}, behavior)).toBe(expected);
  });

  it('invokes the personal agent where the channel says so', () => {
    expect(reason({}, { isPersonal: true }, 'all_messages_personal_agent')).toBe('personal_agent');
    expect(reason({}, { isPersonal: true }, 'at_mentions_only')).toBe('not_mentioned');
  });

  it('invokes an agent that it is relevant for where the channel says so', () => {
    expect(reason({}, {}, 'intelligent', true)).toBe('relevant');
    expect(reason({}, {}, 'at_mentions_only', true)).toBe('not_mentioned');
  });

  it('invokes the agents that it mentions, and none that it withholds or that are inactive', () => {
    for (const behavior of BEHAVIORS) {
      expect(reason({ mentions: mention }, {}, behavior)).toBe('mentioned');
      expect(reason({ mentions: new Set(['eve']) }, {}, behavior)).toBe(reason({}, {}, behavior));
      expect(reason({ mentions: mention, withheld: mention }, {}, behavior, true)).toBe('withheld');
      expect(reason({ mentions: mention }, { isActive: false }, behavior, true)).toBe('inactive');
    }
  });

  it('is compared with what an agent knows only if that decides', () => {
    expect(asksRelevance(user, ada, 'intelligent')).toBe(true);
    expect(asksRelevance(user, ada, 'all_messages')).toBe(false);
    expect(asksRelevance({ ...user, mentions: mention }, ada, 'intelligent')).toBe(false);
    expect(asksRelevance({ ...user, withheld: mention }, ada, 'intelligent')).toBe(false);
    expect(asksRelevance(user, { ...ada, isActive: false }, 'intelligent')).toBe(false);
  });
});

describe('a message of an agent', () => {
  const from = (type: string, agentId: string | null, depth = 1) => ({ sender: { type, agentId }, depth });

  it('invokes the agents that it mentions, and no other', () => {
    for (const behavior of BEHAVIORS) {
      for (const sender of [from('agent', 'eve'), from('external_agent', null)]) {
        expect(reason(sender, { isPersonal: true }, behavior, true)).toBe('not_mentioned');
        expect(reason({ ...sender, mentions: mention }, {}, behavior)).toBe('mentioned');
      }
    }
    expect(asksRelevance({ ...user, ...from('agent', 'eve') }, ada, 'intelligent')).toBe(false);
  });

  it('never invokes that agent', () => {
    for (const behavior of BEHAVIORS) {
      expect(reason({ ...from('agent', 'ada'), mentions: mention }, {}, behavior, true)).toBe('own_message');
    }
  });

  it('invokes none beyond the number of hops', () => {
    const sent = (depth: number, mentions = mention) => reason({ ...from('agent', 'eve', depth), mentions }, {}, null);
    expect(sent(MAX_HOPS - 1)).toBe('mentioned');
    expect(sent(MAX_HOPS)).toBe('depth_cap');
    expect(sent(MAX_HOPS + 1)).toBe('depth_cap');
    expect(sent(MAX_HOPS, new Set())).toBe('not_mentioned');
  });
});
