/* The order of what a search finds. */

/** The place of a result in the order: equal in every process that has the same events. */
export interface ResultKey {
  /** 0 in a list of the newest. */
  readonly score: number;
  readonly atMs: number;
  readonly sequence: number;
  readonly channelId: string;
}

/** The better result first; results are never equal. */
export function compareResults(one: ResultKey, other: ResultKey): number {
  return (
    other.score - one.score ||
    other.atMs - one.atMs ||
    other.sequence - one.sequence ||
    (one.channelId < other.channelId ? -1 : one.channelId > other.channelId ? 1 : 0)
  );
}

/** The first results of many. */
export class BestResults {
  readonly #limit: number;
  /** Twice the limit at most, so that they are sorted rarely: far pages of the newest take every result at first. */
  readonly #kept: ResultKey[] = [];
  /** The last one that still counts. */
  #last: ResultKey | null = null;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(key: ResultKey): void {
    if (this.#last !== null && compareResults(this.#last, key) < 0) return;
    this.#kept.push(key);
    if (this.#kept.length >= 2 * this.#limit) this.#cut();
  }

  get results(): readonly ResultKey[] {
    this.#cut();
    return this.#kept;
  }

  #cut(): void {
    this.#kept.sort(compareResults);
    if (this.#kept.length > this.#limit) this.#kept.length = this.#limit;
    if (this.#kept.length === this.#limit) this.#last = this.#kept.at(-1) ?? null;
  }
}
