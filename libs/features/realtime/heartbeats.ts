import type { ChannelListener } from './channel-listener.ts';
import { HEARTBEAT_MS, PONG_WAIT_MS } from './protocol.ts';

/** Milliseconds between the ticks of a node. */
export const TICK_MS = 1_000;
const SLOTS = HEARTBEAT_MS / TICK_MS;
const WAIT = PONG_WAIT_MS / TICK_MS;

/**
 * A wheel of listeners, one slot a tick, instead of a timer for each. Who comes gets a slot by chance: those who
 * come back together after a restart are not asked together ever after.
 */
export class Heartbeats {
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<ChannelListener>());
  readonly #chance: () => number;
  #now = 0;

  constructor(chance: () => number = Math.random) {
    this.#chance = chance;
  }

  add(listener: ChannelListener): void {
    listener.slot = Math.floor(this.#chance() * SLOTS);
    this.#slots[listener.slot]?.add(listener);
  }

  remove(listener: ChannelListener): void {
    this.#slots[listener.slot]?.delete(listener);
  }

  /** All of them. */
  *[Symbol.iterator](): Iterator<ChannelListener> {
    for (const slot of this.#slots) yield* slot;
  }

  tick(): void {
    this.#now += 1;
    // First those who were asked before: who is asked now has not answered yet.
    for (const listener of this.#slots[(this.#now + SLOTS - WAIT) % SLOTS] ?? []) listener.checkBeat();
    for (const listener of this.#slots[this.#now % SLOTS] ?? []) listener.beat();
  }
}
