/** The variables for prompts of agents, and the configuration that results. */
import type { z } from 'zod';
import { integer } from './variables.ts';

export const promptVariables = {
  PROMPT_TIMEOUT_MS: integer(1_000, 900_000)
    .prefault('45000')
    .describe(
      'Milliseconds that a prompt waits for its answer; then it is 504, and the run continues. Proxies must wait longer: many give up after 50 or 60 seconds.',
    ),
  PUBLIC_PROMPTS_PER_ADDRESS: integer(0, 100_000_000)
    .prefault('20')
    .describe('Prompts without an API key per minute from one address; 0 for no limit.'),
  PUBLIC_PROMPTS_PER_AGENT: integer(1, 100_000_000)
    .prefault('1000')
    .describe('Prompts without an API key that one agent answers on a day, in UTC.'),
};

type PromptValues = { readonly [Name in keyof typeof promptVariables]: z.output<(typeof promptVariables)[Name]> };

export interface PromptLimits {
  /** Longest time that a request waits for the end of its run, in milliseconds. */
  readonly timeoutMs: number;
  /** Prompts without a key from one address in a minute, in each process; 0 for no limit. */
  readonly publicPerAddress: number;
  /** Prompts without a key that one agent gets on a day. */
  readonly publicPerAgent: number;
}

export function promptConfigOf(values: PromptValues): { readonly prompts: PromptLimits } {
  return {
    prompts: {
      timeoutMs: values.PROMPT_TIMEOUT_MS,
      publicPerAddress: values.PUBLIC_PROMPTS_PER_ADDRESS,
      publicPerAgent: values.PUBLIC_PROMPTS_PER_AGENT,
    },
  };
}
