/** Tokens and costs of calls of models, as the API shows them. */
import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
import type { TokenUsage } from '#libs/kernel/token-usage.ts';

const tokens = z.int().nullable();

const usageFields = shownFields<TokenUsage>()({
  input_tokens: tokens,
  cached_input_tokens: tokens,
  output_tokens: tokens,
  reasoning_tokens: tokens,
});
export const usageResource = usageFields.resource;
export const usageSchema = z
  .object(usageFields.shape)
  .meta({ id: 'TokenUsage', description: 'As the model endpoint counts them; null where it does not' });

export const costSchema = z.number().nullable().describe('In the currency of the configured prices; null without them');
