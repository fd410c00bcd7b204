/**
 * kafkajs 2.2.4 (and 2.3.0-beta.3) asks for a timer with a negative delay after each answer of a broker. Node 24
 * warns of it (`TimeoutNegativeWarning`), and the timer sets itself again: every connection wakes the process a
 * thousand times a second for nothing. Here is the one method that does it, with a timer only where requests wait.
 */
import { createRequire } from 'node:module';

/** How soon waiting requests are looked at again where no throttling says when. As in kafkajs. */
const CHECK_PENDING_MS = 10;

/** The part of kafkajs' queue of requests that concerns us. */
export interface RequestQueue {
  readonly pending: readonly unknown[];
  /** In milliseconds since the Unix epoch; -1 while the broker has not throttled us. */
  readonly throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
}

export function scheduleCheckPendingRequests(this: RequestQueue): void {
  if (this.throttleCheckTimeoutId !== null) return;
  const throttledMs = this.throttledUntil - Date.now();
  if (throttledMs <= 0 && this.pending.length === 0) return;
  this.throttleCheckTimeoutId = setTimeout(
    () => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    },
    throttledMs > 0 ? throttledMs : CHECK_PENDING_MS,
  );
}

/**
 * Puts it in place, for all connections of this process; repeating it does nothing.
 *
 * @throws Error when kafkajs is another one than the one that was looked at
 */
export function mendTimers(): void {
  const queue: unknown = createRequire(import.meta.url)('kafkajs/src/network/requestQueue');
  const prototype: unknown = typeof queue === 'function' ? queue.prototype : undefined;
  const methods = typeof prototype === 'object' && prototype !== null ? prototype : {};
  if (!('scheduleCheckPendingRequests' in methods) || !('checkPendingRequests' in methods)) {
    throw new Error('this kafkajs has no request queue as 2.2.4 has: look whether its timers still need mending');
  }
  methods.scheduleCheckPendingRequests = scheduleCheckPendingRequests;
}
