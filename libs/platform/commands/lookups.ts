import type { CountLookup, EntityWrite, FieldLookup, Lookup } from '#libs/platform/readmodel/index.ts';

/** Gives a decider the value of a field that its command declared as a look-up; null if there is none. */
export type Found = (lookup: FieldLookup) => string | null;

/** As {@link Found}, for counts. Members that earlier commands of the same batch have removed are still counted. */
export type Counted = (lookup: CountLookup) => number;

/** The looked-up values of a batch. Each decided command updates them with the writes of its projection. */
export class Lookups {
  readonly #fields = new Map<string, string | null>();
  readonly #counts = new Map<string, number>();
  readonly #failure: unknown;

  /** @param failure error of the read, thrown to deciders that need a value */
  constructor(lookups: readonly Lookup[] = [], values: readonly (string | number | null)[] = [], failure?: unknown) {
    this.#failure = failure;
    for (const [index, lookup] of lookups.entries()) {
      const value = values[index] ?? null;
      if ('score' in lookup) this.#counts.set(nameOf(lookup.key, lookup.score), Number(value));
      else this.#fields.set(nameOf(lookup.key, lookup.field), value === null ? null : String(value));
    }
  }

  readonly found: Found = ({ key, field }) => this.#known(this.#fields, key, field);

  readonly counted: Counted = ({ key, score }) => this.#known(this.#counts, key, score);

  /** Applies the writes of a decided command, for later commands. */
  learn(operations: EntityWrite['operations']): void {
    for (const { command, key, args } of operations) {
      if (command === 'HSET') {
        for (let at = 0; at + 1 < args.length; at += 2) this.#learnField(key, args[at], String(args[at + 1]));
      } else if (command === 'HDEL') {
        for (const field of args) this.#learnField(key, field, null);
      } else if (command === 'ZADD') {
        // The members are new, because the command was decided on their absence. ZREM has no scores, so it is not counted.
        for (let at = 0; at + 1 < args.length; at += 2) this.#learnMember(key, args[at]);
      }
    }
  }

  #known<Value>(values: ReadonlyMap<string, Value>, key: string, part: string | number): Value {
    if (this.#failure !== undefined) throw this.#failure;
    const value = values.get(nameOf(key, part));
    if (value === undefined) throw new TypeError(`${key} ${part} was not declared as a look-up`);
    return value;
  }

  #learnField(key: string, field: unknown, value: string | null): void {
    const name = nameOf(key, String(field));
    if (this.#fields.has(name)) this.#fields.set(name, value);
  }

  #learnMember(key: string, score: unknown): void {
    const name = nameOf(key, String(score));
    const count = this.#counts.get(name);
    if (count !== undefined) this.#counts.set(name, count + 1);
  }
}

function nameOf(key: string, part: string | number): string {
  return `${key}\0${part}`;
}
