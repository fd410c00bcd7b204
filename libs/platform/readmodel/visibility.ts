import { setTimeout as delay } from 'node:timers/promises';

import { NO_EVENTS } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { parseStreamName } from '#libs/platform/streams/index.ts';

import type { Projector } from './projector.ts';
import type { ReadModel } from './read-model.ts';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

/** An event that a client has seen, by its stream and its revision there. */
export interface SeenPosition {
  readonly organizationId: EntityId;
  readonly stream: string;
  readonly revision: number;
}

/**
 * Waits until the read models hold what the caller has written or seen.
 *
 * @returns true once the entity's read model reflects `revision` or a later one; false after `timeoutMs`
 * @throws `Fault` `store_unavailable`
 */
export async function waitUntilVisible(
  { readModel, projector }: { readonly readModel: Pick<ReadModel, 'revisions'>; readonly projector: Projector },
  { organizationId, stream, revision }: SeenPosition,
  timeoutMs: number,
): Promise<boolean> {
  const { category, id } = parseStreamName(stream);
  const key = projector.keysOf({ category, organizationId, id }).revision;
  const deadline = Date.now() + timeoutMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const [stored = NO_EVENTS] = await readModel.revisions([key]);
    if (stored >= revision) return true;
    if (Date.now() + pause > deadline) return false;
    await delay(pause);
    // The writer or the projector is about to apply it; if neither does soon, do it here.
    if (pause < LONGEST_PAUSE_MS) continue;
    const caughtUp = projector.catchUp(category, organizationId, id);
    await Promise.race([caughtUp, delay(Math.max(0, deadline - Date.now()))]);
  }
}
