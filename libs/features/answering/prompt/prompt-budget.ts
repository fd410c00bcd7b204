/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept, type Decision, type Fold, refuse } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `promptbudget-<id of the agent>`: public prompts that were admitted. */
export const PROMPT_BUDGET = 'promptbudget';

export const promptBudgetCodec = defineEvents({
  /** `day`: in UTC, as `2026-01-31`. */
  'PublicPromptAdmitted.v1': z.object({ id: z.string(), day: z.string() }),
});

export type PromptBudgetEvent = EventOf<typeof promptBudgetCodec>;

interface PromptBudget extends EntityState {
  readonly day: string;
  /** Prompts that were admitted on this day. */
  readonly used: number;
}

/** `null` until the first public prompt. */
export type PromptBudgetState = PromptBudget | null;

export const promptBudgetFold: Fold<PromptBudgetState, PromptBudgetEvent> = {
  initialState: null,
  evolve(state, event) {
    const before = state ?? createdBy(event);
    const used = state?.day === event.data.day ? state.used + 1 : 1;
    return { ...before, ...event.data, ...changedBy(event), used };
  },
};

/**
 * A day ends once, for the first process whose clock shows the next one: processes that are behind count with it.
 *
 * @param max prompts of a day
 */
export function decideAdmit(
  state: PromptBudgetState,
  { id, day, max }: { readonly id: string; readonly day: string; readonly max: number },
): Decision<PromptBudgetEvent, { readonly reason: 'budget_used' }> {
  const latest = state !== null && state.day > day ? state.day : day;
  if (state?.day === latest && state.used >= max) return refuse({ reason: 'budget_used' });
  return accept({ type: 'PublicPromptAdmitted.v1', data: { id, day: latest } });
}
