import { setTimeout as delay } from 'node:timers/promises';

import type { ChannelListener } from './channel-listener.ts';
import { CLOSE } from './protocol.ts';
import type { ListenerAccess } from './realtime.ports.ts';

const AT_ONCE = 500;
/** Who comes within this time is asked about together: many come with the same key, and it is read once for all. */
const GATHER_MS = 50;

/**
 * Closes listeners whose key has ended, those of users who were removed from the channel, and those of whom it cannot
 * be known; all but the first may reconnect with a new ticket.
 */
export class AccessChecks {
  readonly #access: ListenerAccess;
  readonly #onFailure: (error: unknown) => void;
  #waiting = new Set<ChannelListener>();
  #running = false;

  constructor(access: ListenerAccess, onFailure: (error: unknown) => void) {
    this.#access = access;
    this.#onFailure = onFailure;
  }

  /** Asks for these soon, together with others. */
  request(listeners: Iterable<ChannelListener>): void {
    for (const listener of listeners) this.#waiting.add(listener);
    if (!this.#running && this.#waiting.size > 0) void this.#run();
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
    try {
      const grants = await this.#access.check(open.map(({ grant }) => grant));
      for (const [index, listener] of open.entries()) {
        const grant = grants[index] ?? 'unknown';
        if (grant === 'lost') listener.close(CLOSE.accessLost, 'Access to the channel was lost');
        else if (grant === 'unknown') listener.close(CLOSE.unverified, 'Access to the channel could not be verified');
        else if (listener.grant.takesPart && !grant.takesPart) {
          listener.close(CLOSE.removed, 'The user was removed from the channel');
        } else if (grant.takesPart !== listener.grant.takesPart) {
          listener.grant = { ...listener.grant, takesPart: grant.takesPart };
        }
      }
    } catch (error) {
      this.#onFailure(error);
    }
  }
}
