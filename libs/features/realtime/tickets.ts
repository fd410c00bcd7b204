import { createHash, randomBytes } from 'node:crypto';

import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { grantSchema, type Grant } from './access.ts';
import { ticketKey } from './tickets.keys.ts';

/** How long a ticket can be used (contract, section 4.2). */
export const TICKET_TTL_MS = 60_000;
/** Prefix of every ticket, which makes leaked ones recognisable. */
const PREFIX = 'parley_ticket_';
const RANDOM_BYTES = 32;
const TICKET = /^parley_ticket_[A-Za-z0-9_-]{43}$/;

// Made once: making a schema costs more than the other work on a ticket.
const issued = z.number();
const redeemed = z.string().nullable();

/**
 * Tickets, each for one websocket on one channel: 256 random bits, of which Redis stores the SHA-256 only. Redis' clock
 * alone measures their lifetime.
 *
 * Guarantees: a ticket is redeemed at most once across all processes, within its lifetime. Throws `store_unavailable`
 * faults.
 * Omits: whether the grant is still valid when it is redeemed; see `SubscriberAccess.admit`. A Redis that loses its
 * newest writes loses tickets, and a redemption without a reply uses up the ticket: the client gets another one.
 */
export class Tickets {
  readonly #functions: FunctionLibrary;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/tickets.lua', import.meta.url));
  }

  async issue(grant: Grant): Promise<{ readonly value: string; readonly expiresAt: Timestamp }> {
    const value = PREFIX + randomBytes(RANDOM_BYTES).toString('base64url');
    const args = [JSON.stringify(grantSchema.parse(grant)), TICKET_TTL_MS];
    const expiresAtMs = issued.parse(await this.#call('parley_ticket_issue_v1', value, args));
    // 256 bits that repeat are not random.
    if (expiresAtMs === 0) throw new TypeError('a ticket was made twice');
    return { value, expiresAt: new Date(expiresAtMs).toISOString() };
  }

  /** @returns null for every ticket that is unknown, used or expired, without saying which */
  async redeem(value: string): Promise<Grant | null> {
    if (!TICKET.test(value)) return null;
    const stored = redeemed.parse(await this.#call('parley_ticket_redeem_v1', value, []));
    return stored === null ? null : grantSchema.parse(JSON.parse(stored));
  }

  /** The calls of one turn of the event loop are sent to Redis together. */
  async #call(name: string, value: string, args: readonly (string | number)[]): Promise<unknown> {
    const digest = createHash('sha256').update(value).digest('base64url');
    const [reply] = await this.#functions.callAll([{ name, keys: [ticketKey(digest)], args }]);
    return reply;
  }
}
