/* Whether a message is about what an agent knows: decided by words, so the same message always gets the same answer. */
import { isStopWord, queryWords, stemOf, wordsOf } from '#libs/features/knowledge/index.ts';

/** Share of the words of a message that must be known. */
export const MIN_SHARE = 0.5;

/**
 * The share of the message's words, 0 to 1, that occur in the texts: those that describe an agent, and facts of its graph.
 * Inflections of a word count as the word. 0 for a message without a subject.
 */
export function relevanceOf(message: string, texts: readonly string[]): number {
  const words = queryWords(message).filter((word) => !isStopWord(word));
  if (words.length === 0) return 0;
  const known = new Set(texts.flatMap((text) => wordsOf(text)).map(stemOf));
  return words.filter((word) => known.has(stemOf(word))).length / words.length;
}
