import { z } from 'zod';

const tokens = z.int().nullable();

/** Tokens that a call of a model has used, as events hold them; null where the endpoint does not count them. */
export const tokenUsage = z.object({
  inputTokens: tokens,
  /** Part of `inputTokens`. */
  cachedInputTokens: tokens,
  outputTokens: tokens,
  /** Part of `outputTokens`. */
  reasoningTokens: tokens,
});

export type TokenUsage = z.infer<typeof tokenUsage>;
