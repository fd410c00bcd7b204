import type { EntityId } from '#libs/kernel/ids.ts';
import { userProjection } from '#libs/features/users/index.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import { foldStream } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { keyProjection } from './keys.projection.ts';
import { knownKey } from './known-key.ts';
import type { KnownKey } from './known-key.ts';

const READS_AT_ONCE = 32;
/** Two reads, one after the other, still end within the 5 s in which a request has to be answered. */
const READ = { deadlineMs: 2_000 };

/**
 * Keys as the log has them. Their streams and those of users are short, so both are read whole, from the leader: no
 * read model takes part in the decision who may come in, because any of them may lag, be rebuilt or be lost.
 */
export class KeyDirectory {
  readonly #store: Platform['store'];
  readonly #reads = new FairSemaphore({ permits: READS_AT_ONCE });

  constructor({ store }: Pick<Platform, 'store'>) {
    this.#store = store;
  }

  /**
   * @returns null for a key that does not work, whatever the reason
   * @throws `Fault` `store_unavailable` when the log cannot be read
   */
  byId(id: EntityId): Promise<KnownKey | null> {
    return this.#reads.run(async () => {
      const key = await foldStream(this.#store, keyProjection, id, READ);
      if (key === null || key === 'withdrawn' || key.principal.type !== 'user') return knownKey(key, null);
      return knownKey(key, await foldStream(this.#store, userProjection, key.principal.id, READ));
    });
  }
}
