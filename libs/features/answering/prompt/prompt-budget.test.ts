import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { decideAdmit, promptBudgetCodec, type PromptBudgetEvent, promptBudgetFold } from './prompt-budget.ts';
import samples from './prompt-budget.events.samples.json' with { type: 'json' };

describeStoredEvents('prompt budgets', promptBudgetCodec, samples);

const admitted = (day: string): PromptBudgetEvent => ({ type: 'PublicPromptAdmitted.v1', data: { id: 'ada', day } });
const [friday, saturday] = ['2026-01-30', '2026-01-31'];

describe('the budget of an agent', () => {
  it('admits so many public prompts on each day', () => {
    const used = stateAfter(promptBudgetFold, [admitted(friday), admitted(friday)]);
    expect(decideAdmit(used, { id: 'ada', day: friday, max: 3 })).toEqual({ ok: true, events: [admitted(friday)] });
    expect(decideAdmit(used, { id: 'ada', day: friday, max: 2 })).toEqual({
      ok: false,
      rejection: { reason: 'budget_used' },
    });
    expect(decideAdmit(used, { id: 'ada', day: saturday, max: 2 })).toEqual({ ok: true, events: [admitted(saturday)] });
    expect(stateAfter(promptBudgetFold, [admitted(friday), admitted(saturday)])).toMatchObject({ used: 1 });
  });

  it('does not return to the day before, which a clock that is behind still shows', () => {
    const used = stateAfter(promptBudgetFold, [admitted(friday), admitted(saturday)]);
    expect(decideAdmit(used, { id: 'ada', day: friday, max: 1 })).toMatchObject({ ok: false });
    expect(decideAdmit(used, { id: 'ada', day: friday, max: 2 })).toEqual({ ok: true, events: [admitted(saturday)] });
  });
});
