import type { EphemeralFrame } from './frames.ts';

/** Something of the moment, such as that somebody is typing. */
export interface Ephemeral {
  /** What it is about: a newer one replaces an older one with the same key. */
  readonly key: string;
  readonly data: unknown;
  /** Milliseconds after which it no longer holds. */
  readonly ttlMs: number;
}

/** More keys than this are not remembered, so that a busy channel costs a bounded amount. */
const MAX_KEYS = 1_000;

/** Lets only what is newer pass. Numbers count for as long as the value holds, and within one connection. */
export class Ephemerals {
  readonly #newest = new Map<string, { readonly n: number; readonly until: number }>();

  /** @returns null when something newer was there already */
  take({ key, n, data, ttl_ms: ttlMs }: EphemeralFrame, nowMs: number): Ephemeral | null {
    const held = this.#newest.get(key);
    if (held !== undefined && held.until > nowMs && n <= held.n) return null;
    // Put at the end: the first key of the map is the one that was not heard of for longest.
    this.#newest.delete(key);
    this.#newest.set(key, { n, until: nowMs + ttlMs });
    if (this.#newest.size > MAX_KEYS) this.#forgetOldest();
    return { key, data, ttlMs };
  }

  /** A new connection may be to a server that counts anew. */
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
