/* Passages that say nearly the same: copies of a page, and texts that occur on every page of a site. */
import { wordsOf } from '#libs/features/knowledge/index.ts';

/** Different words, without numbers, of a text that is recognised by most of them. A shorter one has to have the same. */
const MIN_WORDS = 12;
/** Words of the longer one of two texts that both have. */
const SHARED = 0.9;

/** Compares texts with those before them. Case and punctuation do not count, nor do numbers in long texts. */
export class Repetitions {
  readonly #short = new Set<string>();
  readonly #long: ReadonlySet<string>[] = [];

  /** Whether a text before this one says nearly the same. Otherwise, later texts are compared with this one as well. */
  repeats(text: string): boolean {
    const all = wordsOf(text);
    const words = new Set(all.filter((word) => !/\d/.test(word)));
    if (words.size < MIN_WORDS) {
      const known = this.#short.size;
      return this.#short.add(all.join(' ')).size === known;
    }
    if (this.#long.some((other) => areNearlyEqual(words, other))) return true;
    this.#long.push(words);
    return false;
  }
}

function areNearlyEqual(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const least = SHARED * Math.max(one.size, other.size);
  return Math.min(one.size, other.size) >= least && one.intersection(other).size >= least;
}
