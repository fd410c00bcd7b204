import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { agentFields } from './agent.fields.ts';
import {
  type Agent,
  agentCodec,
  type AgentEvent,
  agentFold,
  decideActivate,
  decideDeactivate,
  decideUpdate,
  newAgent,
} from './agent.ts';
import samples from './agent.events.samples.json' with { type: 'json' };

describeStoredEvents('agents', agentCodec, samples);

const created: AgentEvent = {
  type: 'AgentCreated.v1',
  data: newAgent('agent-1', { name: 'Ada', features: { sms: true }, imageUrl: 'https://example.org/a', voiceId: null }),
};
const deactivated: AgentEvent = { type: 'AgentDeactivated.v1', data: {} };
const activated: AgentEvent = { type: 'AgentActivated.v1', data: {} };

function given(...events: AgentEvent[]): Agent {
  const state = stateAfter(agentFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}

const nothing = { ok: true, events: [] };
const changed = (data: Extract<AgentEvent, { type: 'AgentChanged.v1' }>['data']) => ({
  ok: true,
  events: [{ type: 'AgentChanged.v1', data }],
});

describe('agents', () => {
  it('have the defaults of the contract', () => {
    const { temperature, voiceId, features, ...agent } = given(created);
    expect([temperature, voiceId]).toEqual([0.1, 'jqcCZkN6Knx8BJ5TBdYR']);
    expect(Object.values(features)).toHaveLength(15);
    expect(features).toEqual({ ...agentFields.defaults.features, sms: true });
    expect(agent).toMatchObject({ name: 'Ada', isActive: true, isPersonal: false, imageUrl: 'https://example.org/a' });
  });

  it('change only in what is given and is new', () => {
    const agent = given(created);
    expect(decideUpdate(agent, {})).toEqual(nothing);
    expect(decideUpdate(agent, { name: 'Ada', description: undefined, interestTags: [] })).toEqual(nothing);
    expect(decideUpdate(agent, { name: 'Eve', imageUrl: 'https://example.org/a', category: 'sales' })).toEqual(
      changed({ name: 'Eve', category: 'sales' }),
    );
  });

  it('get the defaults back with null', () => {
    const set = { temperature: 1, voiceId: 'v', isPersonal: true, interestTags: ['a'], metaData: { a: 1 } };
    const cleared = { temperature: null, voiceId: null, isPersonal: null, interestTags: null, metaData: null };
    const agent = given(created, { type: 'AgentChanged.v1', data: set });
    expect(agent).toMatchObject(set);
    const decision = decideUpdate(agent, { ...cleared, imageUrl: null, website: null });
    const { voiceId, temperature, isPersonal, interestTags, metaData } = agentFields.defaults;
    expect(decision).toEqual(changed({ temperature, voiceId, isPersonal, interestTags, metaData, imageUrl: null }));
  });

  it('have each feature switched on its own', () => {
    const agent = given(created);
    expect(decideUpdate(agent, { features: { sms: true } })).toEqual(nothing);
    expect(decideUpdate(agent, { features: { widget_enabled: true } })).toEqual(
      changed({ features: { ...agentFields.defaults.features, sms: true, widget_enabled: true } }),
    );
    expect(decideUpdate(agent, { features: null })).toEqual(changed({ features: agentFields.defaults.features }));
  });

  it('are deactivated and activated, each once', () => {
    expect(decideActivate(given(created))).toEqual(nothing);
    expect(decideDeactivate(given(created))).toEqual({ ok: true, events: [deactivated] });
    expect(decideDeactivate(given(created, deactivated))).toEqual(nothing);
    expect(decideActivate(given(created, deactivated))).toEqual({ ok: true, events: [activated] });
    expect(given(created, deactivated, activated).isActive).toBe(true);
  });
});
