import { createHash } from 'node:crypto';

import { z } from 'zod';

import { type EntityId, newId } from '#libs/kernel/ids.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';
import { FunctionLibrary, type RedisClient } from '#libs/platform/redis/index.ts';

import { hostSlotKeys } from './host-slots.keys.ts';

/** Requests to one site at the same time, and those of one organization. */
const AT_ONCE = 4;
const OF_ORGANIZATION = 3;
/** Longer than any request of a crawl. */
const LEASE_MS = 60_000;

const waitMs = z.number();

export interface SlotRequest {
  readonly organizationId: EntityId;
  /** Between the starts of two requests to the site. */
  readonly intervalMs: number;
  /** Longest time to wait. */
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
}

/**
 * Keeps requests to one site apart, across all crawls and workers.
 *
 * Guarantees: two requests start at least `intervalMs` apart, and at most four are under way, three of them of one organization. Without Redis no request
 * starts.
 * Omits: fairness between crawls of one site. A Redis that loses its newest writes forgets requests under way.
 */
export class HostSlots {
  readonly #functions: FunctionLibrary;

  constructor(redis: RedisClient) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/host-slots.lua', import.meta.url));
  }

  /**
   * @returns a function to call when the request has ended; null if none is free in time
   * @throws Fault `store_unavailable`; the reason of `signal`
   */
  async take(
    site: string,
    { organizationId, intervalMs, maxWaitMs, signal }: SlotRequest,
  ): Promise<(() => Promise<void>) | null> {
    const { next, open } = hostSlotKeys(createHash('sha256').update(site).digest('base64url').slice(0, 22));
    const id = `${organizationId}:${newId()}`;
    const until = performance.now() + maxWaitMs;
    for (;;) {
      signal.throwIfAborted();
      const args = [id, intervalMs, AT_ONCE, LEASE_MS, organizationId, OF_ORGANIZATION];
      const [reply] = await this.#functions.callAll([{ name: 'parley_host_slots_take_v2', keys: [next, open], args }]);
      const wait = waitMs.parse(reply);
      if (wait === 0) {
        return async () => {
          // If Redis is away, the lease ends by itself.
          await this.#functions
            .callAll([{ name: 'parley_host_slots_end_v2', keys: [open], args: [id] }])
            .catch(() => undefined);
        };
      }
      if (performance.now() + wait > until) return null;
      await pause(wait, signal);
    }
  }
}
