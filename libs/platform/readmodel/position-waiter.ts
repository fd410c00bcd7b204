import { setTimeout as delay } from 'node:timers/promises';

import { streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import { parseStreamName } from './projection.ts';
import type { Projector } from './projector.ts';
import type { ReadModel } from './read-model.ts';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

/** Lets a read wait until the read models hold what its caller has written or seen. */
export class ReadModelPositions {
  readonly #readModel: ReadModel;
  readonly #projector: Projector;

  constructor(readModel: ReadModel, projector: Projector) {
    this.#readModel = readModel;
    this.#projector = projector;
  }

  /**
   * @returns true once the entity's read model reflects `revision` or a later one; false after `timeoutMs`
   * @throws `Fault` `store_unavailable`
   */
  async waitUntilVisible(
    position: { readonly organizationId: EntityId; readonly stream: string; readonly revision: number },
    timeoutMs: number,
  ): Promise<boolean> {
    const { category, id } = parseStreamName(position.stream);
    const key = this.#projector.keysOf(category, position.organizationId, id).revision;
    const wanted = streamRevision(position.revision);
    const deadline = Date.now() + timeoutMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const [revision] = await this.#readModel.revisions([key]);
      if (revision !== undefined && revision >= wanted) return true;
      if (Date.now() + pause > deadline) return false;
      await delay(pause);
      // The writer or the projector is about to apply it; if neither does soon, do it here.
      if (pause < LONGEST_PAUSE_MS) continue;
      const caughtUp = this.#projector.catchUp(category, position.organizationId, id);
      await Promise.race([caughtUp, delay(Math.max(0, deadline - Date.now()))]);
    }
  }
}
