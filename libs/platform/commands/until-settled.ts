import type { Fault } from '#libs/kernel/faults.ts';

const MAX_ATTEMPTS = 8;

/** Repeats `attempt` until its result is not undefined. @throws `Fault` of `exhausted` after {@link MAX_ATTEMPTS} */
export async function untilSettled<T>(exhausted: () => Fault, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
    const result = await attempt();
    if (result !== undefined) return result;
  }
  throw exhausted();
}
