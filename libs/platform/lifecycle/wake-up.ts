/**
 * Lets one loop sleep while there is nothing to do.
 *
 * Guarantee: a call of `wake` while the loop works ends its next sleep at once.
 */
export class WakeUp {
  #next = Promise.withResolvers<void>();

  /** Never throws. */
  readonly wake = (): void => this.#next.resolve();

  /** Resolves after a call of `wake`, or after `maxMs`. */
  async sleep(maxMs?: number): Promise<void> {
    const timer = maxMs === undefined ? undefined : setTimeout(this.wake, maxMs);
    await this.#next.promise;
    clearTimeout(timer);
    this.#next = Promise.withResolvers();
  }
}
