import type { TokenUsage } from '#libs/kernel/token-usage.ts';

import type { Run } from './run.ts';

type Spent = Pick<Run, 'steps' | 'failure'>;

/** Tokens of all steps, the failed one included; a sum is null if no step knows it. */
export function totalUsage({ steps, failure }: Spent): TokenUsage {
  const usages = [...steps.flatMap((one) => (one.kind === 'model' ? [one.usage] : [])), failure?.usage ?? []].flat();
  return {
    inputTokens: sumOf(usages.map(({ inputTokens }) => inputTokens)),
    cachedInputTokens: sumOf(usages.map(({ cachedInputTokens }) => cachedInputTokens)),
    outputTokens: sumOf(usages.map(({ outputTokens }) => outputTokens)),
    reasoningTokens: sumOf(usages.map(({ reasoningTokens }) => reasoningTokens)),
  };
}

/** Null if no step knows its cost. */
export function totalCost({ steps, failure }: Spent): number | null {
  const sum = sumOf([...steps.flatMap((one) => (one.kind === 'model' ? [one.cost] : [])), failure?.cost ?? null]);
  // 0.1 + 0.2 is 0.3.
  return sum && Number(sum.toFixed(12));
}

function sumOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}
