/** Holds what passes while it is closed. What is held is in progress for as long as a test wants it. */
export class Gate {
  /** Which keys are held; null while the gate is open. */
  #closedFor: ((key: string) => boolean) | null = null;
  readonly #held = new Set<{ readonly key: string; readonly release: () => void }>();

  /** Holds what has such a key from now on. */
  close(isHeld: (key: string) => boolean = () => true): void {
    this.#closedFor = isHeld;
  }

  /** Lets all pass that is held, and all that comes. */
  open(): void {
    this.#closedFor = null;
    for (const { release } of this.#held) release();
    this.#held.clear();
  }

  pass(key: string): Promise<void> {
    if (this.#closedFor?.(key) !== true) return Promise.resolve();
    return new Promise((release) => void this.#held.add({ key, release }));
  }

  /** In the order of their arrival. */
  get held(): readonly string[] {
    return [...this.#held].map(({ key }) => key);
  }
}
