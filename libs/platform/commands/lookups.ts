import type { EntityWrite, Lookup } from '#libs/platform/readmodel/read-model.ts';

/** What a decider asks for what it declared to look up: the field's value, or null if there is none. */
export type Found = (lookup: Lookup) => string | null;

/**
 * What the commands of a batch have looked up, and what commands before them in the same batch have made of
 * it since. The second follows from the very writes that the projection would do.
 */
export class Lookups {
  readonly #values = new Map<string, string | null>();

  readonly #failure: unknown;

  /** @param failure why nothing could be looked up; whoever asks gets it */
  constructor(lookups: readonly Lookup[] = [], values: readonly (string | null)[] = [], failure?: unknown) {
    this.#failure = failure;
    lookups.forEach((lookup, index) => this.#values.set(nameOf(lookup), values[index] ?? null));
  }

  readonly found: Found = (lookup) => {
    const value = this.#values.get(nameOf(lookup));
    if (this.#failure !== undefined) throw this.#failure;
    if (value === undefined) throw new TypeError(`${lookup.key} ${lookup.field} was not declared as a look-up`);
    return value;
  };

  /** Takes over what a decided command would write, for the commands behind it. */
  learn(operations: EntityWrite['operations']): void {
    for (const { command, key, args } of operations) {
      if (command === 'HSET') {
        for (let at = 0; at + 1 < args.length; at += 2) this.#learn(key, args[at], String(args[at + 1]));
      } else if (command === 'HDEL') {
        for (const field of args) this.#learn(key, field, null);
      }
    }
  }

  #learn(key: string, field: unknown, value: string | null): void {
    const name = nameOf({ key, field: String(field) });
    if (this.#values.has(name)) this.#values.set(name, value);
  }
}

function nameOf({ key, field }: Lookup): string {
  return `${key}\0${field}`;
}
