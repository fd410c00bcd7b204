/** Tokens and costs of calls of models, as the API shows them. */
import { z } from 'zod';

import type { TokenUsage } from '#libs/kernel/token-usage.ts';

const tokens = z.int().nullable();

/** As the API shows it. */
export const usageSchema = z
  .object({ input_tokens: tokens, cached_input_tokens: tokens, output_tokens: tokens, reasoning_tokens: tokens })
  .meta({ id: 'TokenUsage', description: 'As the model endpoint counts them; null where it does not' });

export const costSchema = z.number().nullable().describe('In the currency of the configured prices; null without them');

export function usageResource(usage: TokenUsage): z.infer<typeof usageSchema> {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
  return {
    input_tokens: inputTokens,
    cached_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
    reasoning_tokens: reasoningTokens,
  };
}
