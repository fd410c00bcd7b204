import { hash, randomBytes } from 'node:crypto';
import { setImmediate as endOfTurn } from 'node:timers/promises';

import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import type { ChannelGrant } from '#libs/platform/live/index.ts';

import { grantSchema } from './access.ts';
import { ticketKey } from './tickets.keys.ts';

/** How long a ticket can be used (contract, section 4.2). */
export const TICKET_TTL_MS = 60_000;
/** Prefix of every ticket, which makes leaked ones recognisable. */
const PREFIX = 'parley_ticket_';
const RANDOM_BYTES = 32;
const TICKET = /^parley_ticket_[A-Za-z0-9_-]{43}$/;

// Made once: making a schema costs more than the other work on a ticket.
const issued = z.number();
const taken = z.array(z.string().nullable());

/** Redis functions take at most about 8,000 keys. */
const MAX_BATCH = 1_000;

/** A redemption that waits for the reply of Redis. */
interface Redemption {
  readonly key: string;
  resolve(stored: string | null): void;
  reject(error: unknown): void;
}

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
  readonly #redis: Platform['redis'];
  readonly #functions: FunctionLibrary;
  /** By node: the redemptions that wait for those in flight. */
  readonly #waiting = new Map<ReturnType<Platform['redis']['nodeOf']>, Redemption[]>();

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#redis = redis;
    this.#functions = new FunctionLibrary(redis, new URL('./lua/tickets.lua', import.meta.url));
  }

  async issue(grant: ChannelGrant): Promise<{ readonly value: string; readonly expiresAt: Timestamp }> {
    const value = PREFIX + randomBytes(RANDOM_BYTES).toString('base64url');
    const args = [JSON.stringify(grantSchema.parse(grant)), TICKET_TTL_MS];
    const [reply] = await this.#functions.callAll([{ name: 'parley_ticket_issue_v3', keys: [keyOf(value)], args }]);
    const expiresAtMs = issued.parse(reply);
    // 256 bits that repeat are not random.
    if (expiresAtMs === 0) throw new TypeError('a ticket was made twice');
    return { value, expiresAt: new Date(expiresAtMs).toISOString() };
  }

  /** @returns null for every ticket that is unknown, used or expired, without saying which */
  async redeem(value: string): Promise<ChannelGrant | null> {
    if (!TICKET.test(value)) return null;
    const stored = await this.#take(keyOf(value));
    return stored === null ? null : grantSchema.parse(JSON.parse(stored));
  }

  /** While redemptions are in flight at a node, the next ones gather, so that clients that reconnect share few writes. */
  #take(key: string): Promise<string | null> {
    return new Promise((resolve, reject) => {
      const node = this.#redis.nodeOf(key);
      const waiting = this.#waiting.get(node);
      if (waiting !== undefined) return void waiting.push({ key, resolve, reject });
      this.#waiting.set(node, [{ key, resolve, reject }]);
      void this.#sendAll(node);
    });
  }

  async #sendAll(node: ReturnType<Platform['redis']['nodeOf']>): Promise<void> {
    for (let batch = this.#waiting.get(node) ?? []; batch.length > 0; batch = this.#waiting.get(node) ?? []) {
      // Tickets of this iteration of the event loop join the batch.
      await endOfTurn();
      this.#waiting.set(node, batch.splice(MAX_BATCH));
      // Keys of one call must be in one slot, and those of a cluster are in many.
      const calls = this.#redis.isOneServer ? [batch] : batch.map((one) => [one]);
      await Promise.all(calls.map((some) => this.#takeAll(some)));
    }
    this.#waiting.delete(node);
  }

  /** Settles all of them; never rejects. */
  async #takeAll(batch: readonly Redemption[]): Promise<void> {
    try {
      const call = { name: 'parley_ticket_take_v3', keys: batch.map(({ key }) => key), args: [] };
      const [reply] = await this.#functions.callAll([call]);
      const stored = taken.parse(reply);
      for (const [index, { resolve }] of batch.entries()) resolve(stored[index] ?? null);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

function keyOf(value: string): string {
  return ticketKey(hash('sha256', value, 'base64url'));
}
