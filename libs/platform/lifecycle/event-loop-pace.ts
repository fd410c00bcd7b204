import { setTimeout as delay } from 'node:timers/promises';

/** Work that is never let in more slowly than this, however busy the event loop is: 20 pieces in a second. */
const MAX_WAIT_MS = 50;

/**
 * Lets work in so slowly that the event loop is idle for half of the time. How much time a piece takes is seen from the
 * event loop alone, so this includes the work that follows from it elsewhere in the process.
 */
export class EventLoopPace {
  #since = performance.eventLoopUtilization();
  #last: Promise<void> = Promise.resolve();

  /** Resolves for one caller after the other, each when the event loop has been idle for as long as it was busy. */
  wait(): Promise<void> {
    return (this.#last = this.#last.then(() => this.#idle()));
  }

  async #idle(): Promise<void> {
    for (const until = performance.now() + MAX_WAIT_MS; ;) {
      const { active, idle } = performance.eventLoopUtilization(this.#since);
      const waitMs = Math.min(active - idle, until - performance.now());
      if (waitMs <= 0) break;
      await delay(waitMs);
    }
    this.#since = performance.eventLoopUtilization();
  }
}
