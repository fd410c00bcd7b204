/** Event listeners by the name of the event. */
export class Listeners<Events extends object> {
  readonly #functions = new Map<keyof Events, Set<(value: never) => void>>();

  /** @returns removes the listener */
  add<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    const functions = this.#functions.get(name) ?? new Set();
    this.#functions.set(name, functions);
    functions.add(listener);
    return () => void functions.delete(listener);
  }

  has(name: keyof Events): boolean {
    return (this.#functions.get(name)?.size ?? 0) > 0;
  }

  /** An error of a listener is reported as uncaught and does not affect the other listeners. */
  emit<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of this.#functions.get(name) ?? []) {
      try {
        // `add` accepts only listeners of the type of this name.
        (listener as (value: Events[Name]) => void)(value);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
