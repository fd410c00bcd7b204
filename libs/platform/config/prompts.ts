/** The variables for prompts of agents, and the configuration that results. */
import type { z } from 'zod';
import { integer } from './variables.ts';

export const promptVariables = {
  PROMPT_TIMEOUT_MS: integer(1_000, 900_000)
    .prefault('60000')
    .describe('Milliseconds that a prompt waits for its answer; then it is 504, and the run continues.'),
};

type PromptValues = { readonly [Name in keyof typeof promptVariables]: z.output<(typeof promptVariables)[Name]> };

export interface PromptLimits {
  /** Longest time that a request waits for the end of its run, in milliseconds. */
  readonly timeoutMs: number;
}

export function promptConfigOf(values: PromptValues): { readonly prompts: PromptLimits } {
  return { prompts: { timeoutMs: values.PROMPT_TIMEOUT_MS } };
}
