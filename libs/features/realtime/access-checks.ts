import { setTimeout as delay } from 'node:timers/promises';

import type { ChannelListener } from './channel-listener.ts';
import { CLOSE } from './protocol.ts';
import type { ListenerAccess } from './realtime.ports.ts';

const AT_ONCE = 500;
/** Requests within this time are checked together: many listeners have the same key, which is read once for all. */
const GATHER_MS = 50;
/** A listener whose key was read longer ago than this is closed. In ticks, of a second. */
const MAX_UNVERIFIED_TICKS = 55;
/** Age of a read that a key may be admitted on: a new listener counts as verified this long ago, until its check. */
const ADMITTED_AGE_TICKS = 35;
const TICK_MS = 1_000;

export interface AccessChecksParts {
  readonly access: ListenerAccess;
  /** Ticks since the node began. */
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Closes listeners whose key has ended, those of users who were removed from the channel, and those whose key could not
 * be verified for too long. All but the first may reconnect with a new ticket.
 */
export class AccessChecks {
  readonly #access: ListenerAccess;
  readonly #now: () => number;
  readonly #onFailure: (error: unknown) => void;
  #waiting = new Set<ChannelListener>();
  #running = false;

  constructor({ access, now, onFailure }: AccessChecksParts) {
    this.#access = access;
    this.#now = now;
    this.#onFailure = onFailure;
  }

  /** Before the first check of a listener. */
  begin(listener: ChannelListener): void {
    listener.verifiedTick = this.#now() - ADMITTED_AGE_TICKS;
  }

  /** Asks for these soon, together with others. */
  request(listeners: Iterable<ChannelListener>): void {
    for (const listener of listeners) this.#waiting.add(listener);
    if (!this.#running && this.#waiting.size > 0) void this.#run();
  }

  /** Closes those whose time has run out, whether checks get answers or not. */
  tick(listeners: Iterable<ChannelListener>): void {
    const oldest = this.#now() - MAX_UNVERIFIED_TICKS;
    const nowMs = Date.now();
    for (const listener of listeners) {
      const { expiresAtMs } = listener.grant;
      if (expiresAtMs !== null && expiresAtMs <= nowMs) listener.close(CLOSE.accessLost, 'The key has expired');
      else if (listener.verifiedTick < oldest) listener.close(CLOSE.unverified, 'The key could not be verified');
    }
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.size > 0) {
      await delay(GATHER_MS, undefined, { ref: false });
      const all = [...this.#waiting];
      this.#waiting = new Set();
      for (let from = 0; from < all.length; from += AT_ONCE) await this.#check(all.slice(from, from + AT_ONCE));
    }
    this.#running = false;
  }

  async #check(listeners: readonly ChannelListener[]): Promise<void> {
    const open = listeners.filter(({ isOpen }) => isOpen);
    if (open.length === 0) return;
    const askedTick = this.#now();
    try {
      const found = await this.#access.check(open.map(({ grant }) => grant));
      for (const [index, listener] of open.entries()) {
        const checked = found[index] ?? 'unknown';
        if (checked === 'unknown') continue;
        if (checked === 'lost') {
          listener.close(CLOSE.accessLost, 'Access to the channel was lost');
          continue;
        }
        const { grant, ageMs } = checked;
        listener.verifiedTick = Math.max(listener.verifiedTick, askedTick - Math.ceil(ageMs / TICK_MS));
        const { takesPart, expiresAtMs } = listener.grant;
        if (takesPart && !grant.takesPart) listener.close(CLOSE.removed, 'The user was removed from the channel');
        else if (takesPart !== grant.takesPart || expiresAtMs !== grant.expiresAtMs) {
          listener.grant = { ...listener.grant, takesPart: grant.takesPart, expiresAtMs: grant.expiresAtMs };
        }
      }
    } catch (error) {
      this.#onFailure(error);
    }
  }
}
