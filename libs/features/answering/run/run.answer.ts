import type { ModelStep, Run } from './run.ts';

/** What writes the answer of a run. */
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
