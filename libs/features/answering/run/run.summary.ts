import type { TokenUsage } from '#libs/kernel/token-usage.ts';

import type { ModelStep, Run } from './run.ts';

/** The writer of the answer of a run. */
export type RunModel = NonNullable<Run['claim']>['model'];

/** The model that has written the last message, as the endpoint calls it; null until one has. */
export function modelOf({ claim, steps }: Pick<Run, 'claim' | 'steps'>): RunModel | null {
  const named = steps.findLast((one): one is ModelStep => one.kind === 'model' && one.model !== undefined);
  return claim === null || named?.model === undefined ? null : { kind: claim.model.kind, name: named.model };
}

/** Why the model ended its last message; null before there is one. */
export function finishOf({ steps }: Pick<Run, 'steps'>): string | null {
  return steps.findLast((one) => one.kind === 'model')?.finish ?? null;
}

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
