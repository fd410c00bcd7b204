import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';

import {
  decideAdmit,
  PROMPT_BUDGET,
  promptBudgetCodec,
  type PromptBudgetEvent,
  promptBudgetFold,
  type PromptBudgetState,
} from './prompt-budget.ts';

export const promptBudgetEntity = entity<PromptBudgetState, PromptBudgetEvent, Record<never, never>>({
  category: PROMPT_BUDGET,
  version: 1,
  codec: promptBudgetCodec,
  fold: promptBudgetFold,
  resource: ({ id, day, used }) => ({ id, day, used }),
  facets: () => ({}),
});

/** How many prompts without an account agents answer on a day. Counted in the log, by all processes together. */
export class PromptBudgets extends Entities<PromptBudgetState, PromptBudgetEvent, Record<never, never>> {
  constructor(core: EntityCore) {
    super(promptBudgetEntity, core);
  }

  /** @returns false if the agent's budget of the day is used up @throws the faults of commands: then nothing is admitted */
  async admit(context: CommandContext, agentId: EntityId, max: number): Promise<boolean> {
    const day = context.at.slice(0, '2026-01-31'.length);
    const result = await this.run(context, agentId, (state) => decideAdmit(state, { id: agentId, day, max }));
    return result.ok;
  }
}
