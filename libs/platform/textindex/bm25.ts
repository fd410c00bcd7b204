/** BM25: how well a text matches a word, by how often the text has it and how rare it is. */

/** How soon further occurrences of a word count less, and how much less they count in long texts. */
const SATURATION = 2;
const LENGTH_WEIGHT = 0.5;

/** Inverse document frequency, greater than 0. @param having texts with the word, of `all` texts */
export function rarityOf(having: number, all: number): number {
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

/** Occurrences as they count in a text of mean length. @param relativeLength of the text, to the mean of all texts */
export function inMeanLength(occurrences: number, relativeLength: number): number {
  return occurrences / (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * relativeLength);
}

/** From 0 to `SATURATION + 1`. */
export function saturated(occurrences: number): number {
  return (occurrences * (SATURATION + 1)) / (occurrences + SATURATION);
}
