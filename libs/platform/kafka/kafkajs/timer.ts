/**
 * kafkajs 2.2.4 (and 2.3.0-beta.3) sets a timer with a negative delay after each response. Node 24 warns about it
 * (`TimeoutNegativeWarning`), and the timer repeats itself: each idle connection wakes the process a thousand times a
 * second. This module replaces the responsible method, and sets the timer only while requests wait.
 */
import { createRequire } from 'node:module';

/** Pause before waiting requests are checked again without throttling; as in kafkajs. */
const CHECK_PENDING_MS = 10;

export interface RequestQueue {
  readonly pending: readonly unknown[];
  /** In milliseconds since the Unix epoch; -1 while the broker has not throttled this client. */
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
 * Replaces the method, for all connections of this process. Idempotent.
 *
 * @throws Error for a version of kafkajs that lacks it
 */
export function fixTimers(): void {
  const queue: unknown = createRequire(import.meta.url)('kafkajs/src/network/requestQueue');
  const prototype: unknown = typeof queue === 'function' ? queue.prototype : undefined;
  const methods = typeof prototype === 'object' && prototype !== null ? prototype : {};
  if (!('scheduleCheckPendingRequests' in methods) || !('checkPendingRequests' in methods)) {
    throw new Error('the request queue of kafkajs differs from 2.2.4: check whether its timers still need this fix');
  }
  methods.scheduleCheckPendingRequests = scheduleCheckPendingRequests;
}
