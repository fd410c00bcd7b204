import { HEARTBEAT_MS, PONG_WAIT_MS } from './protocol.ts';
import type { Subscriber } from './subscriber.ts';

/** Milliseconds between the ticks of a node. */
export const TICK_MS = 1_000;
const SLOTS = HEARTBEAT_MS / TICK_MS;
const PONG_WAIT_TICKS = PONG_WAIT_MS / TICK_MS;

/**
 * All subscribers, in a timing wheel with one slot per tick instead of a timer for each. Slots are random: clients that
 * reconnect together after a restart are not all pinged in the same second from then on.
 */
export class Heartbeats {
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<Subscriber>());
  readonly #random: () => number;
  #now = 0;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  add(subscriber: Subscriber): void {
    subscriber.heartbeatSlot = Math.floor(this.#random() * SLOTS);
    this.#slots[subscriber.heartbeatSlot]?.add(subscriber);
  }

  /** @returns whether it was there */
  remove(subscriber: Subscriber): boolean {
    return this.#slots[subscriber.heartbeatSlot]?.delete(subscriber) ?? false;
  }

  *[Symbol.iterator](): Iterator<Subscriber> {
    for (const slot of this.#slots) yield* slot;
  }

  tick(): void {
    this.#now += 1;
    // Checks those that were pinged before: those that are pinged now have not answered yet.
    for (const subscriber of this.#slots[(this.#now + SLOTS - PONG_WAIT_TICKS) % SLOTS] ?? []) subscriber.checkPong();
    for (const subscriber of this.#slots[this.#now % SLOTS] ?? []) subscriber.ping();
  }
}
