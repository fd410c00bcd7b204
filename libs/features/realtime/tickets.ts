import { createHash, randomBytes } from 'node:crypto';

import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { Grant, Tickets } from './realtime.ports.ts';
import { ticketKey } from './tickets.keys.ts';

/** How long a ticket can be used (contract, section 4.2). */
export const TICKET_TTL_MS = 60_000;
/** What every ticket begins with, by which it is recognised wherever it must not stand. */
const PREFIX = 'parley_ticket_';
const RANDOM_BYTES = 32;
const TICKET = /^parley_ticket_[A-Za-z0-9_-]{43}$/;

const storedGrant = z.object({
  organizationId: z.string(),
  channelId: z.string(),
  principalType: z.enum(['user', 'service']),
  principalId: z.string(),
  keyId: z.string(),
  scopes: z.array(z.string()),
  takesPart: z.boolean(),
  expiresAtMs: z.number().nullable(),
});

// Made once: making a schema costs more than all else that is done with a ticket here.
const issued = z.number();
const redeemed = z.string().nullable();

/**
 * Tickets in Redis: 256 random bits each, of which only the SHA-256 is kept. Time is Redis' own, so that no
 * other clock can make a ticket older or younger. See the port for guarantees.
 *
 * A Redis that loses its newest writes loses tickets: the client then asks for another one. A ticket whose
 * redemption got no answer is used up.
 */
export class RedisTickets implements Tickets {
  readonly #functions: FunctionLibrary;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/tickets.lua', import.meta.url));
  }

  async issue(grant: Grant): Promise<{ readonly value: string; readonly expiresAt: Timestamp }> {
    const value = PREFIX + randomBytes(RANDOM_BYTES).toString('base64url');
    const args = [JSON.stringify(storedGrant.parse(grant)), TICKET_TTL_MS];
    const expires = issued.parse(await this.#call('parley_ticket_issue_v1', value, args));
    // Of 256 random bits, the same twice means that they are not random: nothing may go on then.
    if (expires === 0) throw new TypeError('a ticket was made twice');
    return { value, expiresAt: new Date(expires).toISOString() };
  }

  async redeem(value: string): Promise<Grant | null> {
    if (!TICKET.test(value)) return null;
    const stored = redeemed.parse(await this.#call('parley_ticket_redeem_v1', value, []));
    return stored === null ? null : storedGrant.parse(JSON.parse(stored));
  }

  /** Calls of one turn of the event loop, by however many clients, go to Redis together. */
  async #call(name: string, value: string, args: readonly (string | number)[]): Promise<unknown> {
    const digest = createHash('sha256').update(value).digest('base64url');
    const [reply] = await this.#functions.callAll([{ name, keys: [ticketKey(digest)], args }]);
    return reply;
  }
}
