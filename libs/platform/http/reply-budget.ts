const MINUTE_MS = 60_000;

/**
 * How long a process has its replies to idempotency keys stored, so that all of them together stay within a limit in
 * bytes. Time is what is shared out: the fuller the store, the sooner a new reply expires, and nothing has to be evicted.
 * At a steady rate, as many bytes expire as are added before the limit is reached.
 */
export class ReplyBudget {
  readonly #maxBytes: number;
  readonly #mostMs: number;
  /** Bytes by the minute in which they will have expired. */
  readonly #expiring = new Map<number, number>();
  #minute = 0;
  #bytes = 0;

  /** @param mostMs how long replies are kept while there is enough room */
  constructor(maxBytes: number, mostMs: number) {
    this.#maxBytes = maxBytes;
    this.#mostMs = mostMs;
  }

  /** Bytes that this process has stored and that have not expired. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts a reply. @returns milliseconds to keep it; 0 if there is no room */
  keepMs(bytes: number, nowMs = Date.now()): number {
    this.#expire(nowMs);
    const free = 1 - (this.#bytes + bytes) / this.#maxBytes;
    if (free <= 0) return 0;
    // Squared, so that the store stays mostly filled and yet absorbs a burst.
    const keepMs = Math.max(MINUTE_MS, Math.round(this.#mostMs * Math.min(1, (2 * free) ** 2)));
    const minute = Math.floor((nowMs + keepMs) / MINUTE_MS) + 1;
    this.#expiring.set(minute, (this.#expiring.get(minute) ?? 0) + bytes);
    this.#bytes += bytes;
    return keepMs;
  }

  #expire(nowMs: number): void {
    const now = Math.floor(nowMs / MINUTE_MS);
    if (now <= this.#minute) return;
    this.#minute = now;
    for (const [minute, bytes] of this.#expiring) {
      if (minute > now) continue;
      this.#expiring.delete(minute);
      this.#bytes -= bytes;
    }
  }
}
