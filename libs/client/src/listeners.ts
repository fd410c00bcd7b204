/** Functions that want to be told, by the name of what. */
export class Listeners<Told extends object> {
  readonly #functions = new Map<keyof Told, Set<(told: never) => void>>();

  /** @returns takes the listener off again */
  add<Name extends keyof Told>(name: Name, listener: (told: Told[Name]) => void): () => void {
    const functions = this.#functions.get(name) ?? new Set();
    this.#functions.set(name, functions);
    functions.add(listener);
    return () => void functions.delete(listener);
  }

  has(name: keyof Told): boolean {
    return (this.#functions.get(name)?.size ?? 0) > 0;
  }

  /** A listener that throws is the application's fault: it is reported as uncaught, and the others are told. */
  tell<Name extends keyof Told>(name: Name, told: Told[Name]): void {
    for (const listener of this.#functions.get(name) ?? []) {
      try {
        // Only functions of this name's kind were added under it.
        (listener as (told: Told[Name]) => void)(told);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
