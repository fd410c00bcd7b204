import type { ServerResponse } from 'node:http';
import { finished } from 'node:stream';

import type { HttpError } from './errors.ts';

export interface ConcurrencyLimitOptions {
  /** Of all keys, in this process. */
  readonly max: number;
  readonly maxOfKey: number;
  /** Thrown when there is no place. */
  refusal(): HttpError;
}

/** Bounds what callers do at the same time in this process, for each key and for all together. */
export class ConcurrencyLimit {
  readonly #options: ConcurrencyLimitOptions;
  readonly #ofKey = new Map<string, number>();
  #taken = 0;

  constructor(options: ConcurrencyLimitOptions) {
    this.#options = options;
  }

  /** @returns releases the place; further calls do nothing. @throws the refusal */
  take(keyId: string): () => void {
    const { max, maxOfKey, refusal } = this.#options;
    const ofKey = this.#ofKey.get(keyId) ?? 0;
    if (this.#taken >= max || ofKey >= maxOfKey) throw refusal();
    this.#taken += 1;
    this.#ofKey.set(keyId, ofKey + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken -= 1;
      const left = (this.#ofKey.get(keyId) ?? 1) - 1;
      if (left === 0) this.#ofKey.delete(keyId);
      else this.#ofKey.set(keyId, left);
    };
  }

  /**
   * Takes a place until the response ends, also if its client has left already.
   *
   * @returns releases the place earlier
   * @throws the refusal
   */
  takeUntilEnd(keyId: string, response: ServerResponse): () => void {
    const release = this.take(keyId);
    // Unlike the event `close`, which is past when a client leaves during authentication.
    finished(response, release);
    return release;
  }
}
