/**
 * Calls of one function, of which those with the same key that come while one is under way share the next one.
 *
 * Guarantee: each caller gets the outcome of a call that began after its own, so a read that is shared is as fresh as one
 * that is not. Omission: a caller may wait for the call before, so up to twice as long.
 */
export class SharedCalls<Key, Result> {
  readonly #call: (key: Key) => Promise<Result>;
  readonly #running = new Map<Key, Promise<Result>>();
  /** Calls that have not begun. */
  readonly #next = new Map<Key, Promise<Result>>();

  constructor(call: (key: Key) => Promise<Result>) {
    this.#call = call;
  }

  of(key: Key): Promise<Result> {
    const next = this.#next.get(key);
    if (next !== undefined) return next;
    const running = this.#running.get(key);
    if (running === undefined) return this.#begin(key);
    const begin = (): Promise<Result> => {
      this.#next.delete(key);
      return this.#begin(key);
    };
    const following = running.then(begin, begin);
    this.#next.set(key, following);
    return following;
  }

  #begin(key: Key): Promise<Result> {
    const running = this.#call(key).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }
}

/**
 * The call of the key that is under way, or a new one, which later callers join until it has ended. Unlike `SharedCalls`,
 * a caller may get the outcome of a call that began before its own.
 */
export function joinedCall<Key, Result>(
  underWay: Map<Key, Promise<Result>>,
  key: Key,
  call: () => Promise<Result>,
): Promise<Result> {
  let running = underWay.get(key);
  if (running === undefined) {
    running = call().finally(() => underWay.delete(key));
    underWay.set(key, running);
  }
  return running;
}
