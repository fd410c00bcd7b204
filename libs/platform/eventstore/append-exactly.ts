import type { StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';

import type { EventStore, EventToAppend } from './event-store.ts';
import type { StoreClock } from './store-clock.ts';

type Appended = EventToAppend & { readonly revision: StreamRevision };

/**
 * Appends at exactly the expected revision, and measures this process's clock. An append without an answer is sent once
 * more: the ids are the same at the same expected revision, so the store acknowledges it again if the first one was
 * written.
 *
 * @returns false on a conflict
 * @throws `Fault` of `EventStore.append`
 */
export async function appendExactly(
  { store, clock }: { readonly store: EventStore; readonly clock: StoreClock },
  stream: string,
  expected: StreamRevision,
  events: readonly Appended[],
): Promise<boolean> {
  const [first] = events;
  if (first === undefined) return true;
  const sentAtMs = Date.now();
  const append = async () => (await store.append(stream, expected, events)).kind === 'appended';
  try {
    const isAppended = await append();
    if (isAppended) void clock.measure(stream, first, sentAtMs);
    return isAppended;
  } catch (unknown) {
    if (!(unknown instanceof Fault) || unknown.code !== 'outcome_unknown') throw unknown;
    return await append().catch((error: unknown) => {
      // A fault of the second append does not tell whether the first one was written.
      throw error instanceof Fault ? unknown : error;
    });
  }
}
