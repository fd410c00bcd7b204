import type { Run, TokenUsage } from './run.ts';

/** Tokens of all steps; a sum is null if no step knows it. */
export function totalUsage({ steps }: Pick<Run, 'steps'>): TokenUsage {
  const usages = steps.flatMap((one) => (one.kind === 'model' ? [one.usage] : []));
  return {
    inputTokens: sumOf(usages.map(({ inputTokens }) => inputTokens)),
    cachedInputTokens: sumOf(usages.map(({ cachedInputTokens }) => cachedInputTokens)),
    outputTokens: sumOf(usages.map(({ outputTokens }) => outputTokens)),
    reasoningTokens: sumOf(usages.map(({ reasoningTokens }) => reasoningTokens)),
  };
}

/** Null if no step knows its cost. */
export function totalCost({ steps }: Pick<Run, 'steps'>): number | null {
  const sum = sumOf(steps.flatMap((one) => (one.kind === 'model' ? [one.cost] : [])));
  // 0.1 + 0.2 is 0.3.
  return sum && Number(sum.toFixed(12));
}

function sumOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}
