import type { DomainEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { userProjection } from '#libs/features/users/index.ts';
import { Turnstile } from '#libs/platform/lifecycle/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { keyProjection } from './keys.projection.ts';
import { knownKey } from './known-key.ts';
import type { KnownKey } from './known-key.ts';

const READS_AT_ONCE = 32;
/** Two reads, one after the other, still end within the 5 s in which a request has to be answered. */
const READ_DEADLINE_MS = 2_000;

/**
 * Keys as the log has them. Their streams and those of users are short, so both are read whole, from the leader: no
 * read model takes part in the decision who may come in, because any of them may lag, be rebuilt or be lost.
 */
export class KeyDirectory {
  readonly #store: Platform['store'];
  readonly #reads = new Turnstile(READS_AT_ONCE);

  constructor({ store }: Pick<Platform, 'store'>) {
    this.#store = store;
  }

  /**
   * @returns null for a key that does not work, whatever the reason
   * @throws `Fault` `store_unavailable` when the log cannot be read
   */
  byId(id: EntityId): Promise<KnownKey | null> {
    return this.#reads.pass(async () => {
      const key = await this.#fold(keyProjection, id);
      if (key === null || key === 'withdrawn' || key.principal.type !== 'user') return knownKey(key, null);
      return knownKey(key, await this.#fold(userProjection, key.principal.id));
    });
  }

  async #fold<State, E extends DomainEvent>({ noun, codec, fold }: Projection<State, E>, id: EntityId): Promise<State> {
    let state = fold.initialState;
    for await (const stored of this.#store.readStream(streamName(noun, id), { deadlineMs: READ_DEADLINE_MS })) {
      const event = codec.decode(stored);
      if (event !== null) state = fold.evolve(state, event);
    }
    return state;
  }
}
