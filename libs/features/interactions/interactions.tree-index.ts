import { z } from 'zod';

import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { InteractionKeys } from './interactions.keys.ts';

const sequences = z.array(z.int());

/** Finds where the interactions of a tree are, in one round trip, however deep it is. */
export class InteractionTreeIndex {
  readonly #functions: FunctionLibrary;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/interaction-tree.lua', import.meta.url));
  }

  /**
   * The sequences of all that hangs below a span, ascending.
   *
   * @param range.end those from this sequence on are left out
   * @param range.limit at most so many, a parent before what hangs below it
   * @param range.bytes what they may have together, as they are stored
   * @throws `Fault` `store_unavailable`
   */
  async below(
    { children, documents }: InteractionKeys,
    spanId: string,
    { end, limit, bytes }: { readonly end: number; readonly limit: number; readonly bytes: number },
  ): Promise<number[]> {
    const args = [spanId, Math.min(end, Number.MAX_SAFE_INTEGER), limit, bytes];
    const [found] = await this.#functions.callAll([
      { name: 'parley_interaction_descendants_v2', keys: [children, documents], args },
    ]);
    return sequences.parse(found).sort((a, b) => a - b);
  }
}
