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
  readonly #keys: Gathered;
  readonly #parts: Gathered;

  constructor({ access, now, onFailure }: AccessChecksParts) {
    this.#access = access;
    this.#now = now;
    this.#keys = new Gathered((listeners) => this.#checkKeys(listeners), onFailure);
    this.#parts = new Gathered((listeners) => this.#checkParts(listeners), onFailure);
  }

  /** Before the first check of a listener. */
  begin(listener: ChannelListener): void {
    listener.verifiedTick = this.#now() - ADMITTED_AGE_TICKS;
  }

  /** Checks these soon, together with others. */
  request(listeners: Iterable<ChannelListener>): void {
    const all = [...listeners];
    this.#keys.request(all);
    this.#parts.request(all.filter(({ grant }) => grant.principalType === 'user'));
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

  async #checkKeys(listeners: readonly ChannelListener[]): Promise<void> {
    const askedTick = this.#now();
    const found = await this.#access.checkKeys(listeners.map(({ grant }) => grant));
    for (const [index, listener] of listeners.entries()) {
      const key = found[index] ?? 'unknown';
      if (key === 'lost') listener.close(CLOSE.accessLost, 'Access to the channel was lost');
      if (key === 'lost' || key === 'unknown') continue;
      const { ageMs, expiresAtMs } = key;
      listener.verifiedTick = Math.max(listener.verifiedTick, askedTick - Math.ceil(ageMs / TICK_MS));
      if (expiresAtMs !== listener.grant.expiresAtMs) listener.grant = { ...listener.grant, expiresAtMs };
    }
  }

  async #checkParts(listeners: readonly ChannelListener[]): Promise<void> {
    const found = await this.#access.takingPart(listeners.map(({ grant }) => grant));
    for (const [index, listener] of listeners.entries()) {
      const takesPart = found[index] ?? listener.grant.takesPart;
      if (listener.grant.takesPart && !takesPart)
        listener.close(CLOSE.removed, 'The user was removed from the channel');
      else if (takesPart !== listener.grant.takesPart) listener.grant = { ...listener.grant, takesPart };
    }
  }
}

/** Checks of one kind: requests of a moment are gathered, and checked in chunks, one after another. */
class Gathered {
  readonly #check: (listeners: readonly ChannelListener[]) => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #waiting = new Set<ChannelListener>();
  #running = false;

  constructor(check: (listeners: readonly ChannelListener[]) => Promise<void>, onFailure: (error: unknown) => void) {
    this.#check = check;
    this.#onFailure = onFailure;
  }

  request(listeners: Iterable<ChannelListener>): void {
    for (const listener of listeners) this.#waiting.add(listener);
    if (!this.#running && this.#waiting.size > 0) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.size > 0) {
      await delay(GATHER_MS, undefined, { ref: false });
      const all = [...this.#waiting].filter(({ isOpen }) => isOpen);
      this.#waiting = new Set();
      for (let from = 0; from < all.length; from += AT_ONCE) {
        await this.#check(all.slice(from, from + AT_ONCE)).catch(this.#onFailure);
      }
    }
    this.#running = false;
  }
}
