import type { EphemeralFrame } from './frames.ts';

/** A value that is not stored, such as a typing indicator. */
export interface Ephemeral {
  /** A newer value replaces an older one with the same key. */
  readonly key: string;
  readonly data: unknown;
  /** Milliseconds after which the value expires. */
  readonly ttlMs: number;
}

/** Bounds the memory of a busy channel. */
const MAX_KEYS = 1_000;

/** Drops values that are older than the newest one of their key. Versions count until the value expires, and within one connection. */
export class Ephemerals {
  readonly #newest = new Map<string, { readonly n: number; readonly until: number }>();

  /** @returns null if a newer value has been received */
  take({ key, n, data, ttl_ms: ttlMs }: EphemeralFrame, nowMs: number): Ephemeral | null {
    const held = this.#newest.get(key);
    if (held !== undefined && held.until > nowMs && n <= held.n) return null;
    // Moves the key to the end, so that the first key of the map is the oldest one.
    this.#newest.delete(key);
    this.#newest.set(key, { n, until: nowMs + ttlMs });
    if (this.#newest.size > MAX_KEYS) this.#forgetOldest();
    return { key, data, ttlMs };
  }

  /** The server of a new connection may count from the start. */
  clear(): void {
    this.#newest.clear();
  }

  #forgetOldest(): void {
    for (const key of this.#newest.keys()) {
      this.#newest.delete(key);
      return;
    }
  }
}
