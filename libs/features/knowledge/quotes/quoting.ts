/* Sentences and facts that can be quoted, and those of them that answer a query best. */
import { setImmediate as nextIteration } from 'node:timers/promises';

import { stemOf, wordsOf } from '#libs/platform/textindex/index.ts';

import type { Finding, Source } from './finding.ts';
import { cut, isThing, textOf } from './findings.ts';
import { plainTextOf, sentencesOf } from './sentences.ts';
import type { Terms } from './terms.ts';

const MAX_ANSWER = 5;
/** Characters of a part of a passage. */
const MAX_EXCERPT = 300;
/** The answer has no sentence that scores less than this share of the best one. */
const LEAST_OF_BEST = 0.3;
/** Weight of a word of the query in the title above a sentence; 1 in the sentence. */
const IN_TITLE = 0.5;
/** Weight of a word of the query that the answer has already. */
const REPEATED = 0.4;
/** Weight of words that stand side by side as in the query, besides that of each. */
const IN_PHRASE = 0.2;
/**
 * Weight of the first sentence under a title that has half of the query, and of one that refers to the one before it.
 */
const FIRST = 1.3;
const DEPENDENT = 0.6;
const REFERS_BACK =
  /^(?:\(|(?:this|that|these|those|it|its|they|their|he|she|such|thus|therefore|however|also|either|again|then|so|but|and|or|for example|in this case|in addition|otherwise|similarly|instead|note that|here|it's|setting it)\b)/i;
/** Weight of a fact that was derived from a document, beside the sentences of documents. */
const DERIVED = 0.6;
/** Words of the shorter one that two sentences share if they say the same. */
const SAME = 0.7;

/** A sentence or fact that can be quoted. */
export interface Quote {
  readonly text: string;
  readonly finding: Finding;
  readonly source: Source | null;
  readonly terms: ReadonlySet<number>;
  readonly titleTerms: ReadonlySet<number>;
  readonly stems: ReadonlySet<string>;
  /** Weight of the sentence by its place, its words side by side, and the text that it is from. */
  readonly phrases: number;
  readonly factor: number;
}

/** Markdown takes about a millisecond for each passage to read: the event loop continues between two of them. */
export async function quotesOf(findings: readonly Finding[], terms: Terms): Promise<Quote[]> {
  const quotes: Quote[] = [];
  for (const finding of findings) {
    quotes.push(...quotesIn(finding, terms));
    await nextIteration();
  }
  return quotes;
}

function quotesIn(finding: Finding, terms: Terms): Quote[] {
  const [source = null] = finding.sources;
  const titleTerms = terms.in([finding.name, finding.edge?.target, source?.name].filter(Boolean).join('\n'));
  const first = terms.share(finding.name) >= 0.5 ? FIRST : 1;
  const share = terms.share(textOf(finding));
  const quote = (text: string, index = 1): Quote => {
    const stems = new Set(wordsOf(text).map(stemOf));
    const isDerived = source !== null && (finding.edge !== null || isThing(finding));
    const place = isDerived ? DERIVED : REFERS_BACK.test(text) ? DEPENDENT : index === 0 ? first : 1;
    const factor = (place * (0.5 + share) * 0.5 ** finding.hop) / (1 + stems.size / 60);
    const phrases = IN_PHRASE * terms.phraseWeight(text);
    return { text, finding, source, terms: terms.in(text), titleTerms, stems, phrases, factor };
  };
  if (finding.edge !== null) return [quote(asSentence(finding.edge.fact))];
  const sentences = isThing(finding) ? [] : sentencesOf(source?.passage ?? finding.summary ?? '');
  if (sentences.length > 0) return sentences.map((text, index) => quote(text, index));
  const summary = plainTextOf(finding.summary ?? '');
  // Without a passage, the summary of a document lists its headings.
  if (summary === '' || (!isThing(finding) && !source?.passage)) return [];
  return [quote(asSentence(isThing(finding) ? `${finding.name}: ${summary}` : summary))];
}

/** Parts of what was found, for findings of which no sentence can be quoted: tables, code, lists of words. */
export function excerptsOf(findings: readonly Finding[], terms: Terms): Quote[] {
  const excerpts: Quote[] = [];
  for (const finding of findings) {
    const [source = null] = finding.sources;
    const whole = finding.edge?.fact ?? source?.passage ?? finding.summary ?? finding.name;
    const text = cut(
      whole
        .replace(/[|\s]+|-{3,}/g, ' ')
        .replace(/ +/g, ' ')
        .trim(),
      MAX_EXCERPT,
    );
    if (text === '') continue;
    const stems = new Set(wordsOf(text).map(stemOf));
    const quote = {
      text,
      finding,
      source,
      terms: terms.in(text),
      titleTerms: terms.in(finding.name),
      stems,
      phrases: 0,
      factor: 1,
    };
    if (!excerpts.some((other) => saysTheSame(other, quote))) excerpts.push(quote);
    if (excerpts.length === MAX_ANSWER) break;
  }
  return excerpts;
}

/** The sentences that together have most of the query, without repetitions. */
export function answerOf(quotes: readonly Quote[], terms: Terms): Quote[] {
  const chosen: Quote[] = [];
  const covered = new Set<number>();
  let best = 0;
  while (chosen.length < MAX_ANSWER) {
    let next: { readonly quote: Quote; readonly score: number } | null = null;
    for (const quote of quotes) {
      if (quote.terms.size === 0 || chosen.some((other) => saysTheSame(other, quote))) continue;
      if (chosen.filter(({ source }) => isSamePassage(source, quote.source) && source !== null).length > 1) continue;
      const score = scoreOf(quote, terms, covered);
      if (score > (next?.score ?? 0)) next = { quote, score };
    }
    if (next === null || next.score < LEAST_OF_BEST * best) break;
    best ||= next.score;
    chosen.push(next.quote);
    for (const term of next.quote.terms) covered.add(term);
  }
  return chosen;
}

export function scoreOf(quote: Quote, terms: Terms, covered: ReadonlySet<number>): number {
  const worth = (index: number) => terms.weightOf([index]) * (covered.has(index) ? REPEATED : 1);
  let score = quote.phrases;
  for (const index of quote.terms) score += worth(index);
  for (const index of quote.titleTerms) if (!quote.terms.has(index)) score += IN_TITLE * worth(index);
  return score * quote.factor;
}

export function saysTheSame(one: Quote, other: Quote): boolean {
  let shared = 0;
  for (const stem of one.stems) if (other.stems.has(stem)) shared += 1;
  return shared > SAME * Math.min(one.stems.size, other.stems.size);
}

function isSamePassage(one: Source | null, other: Source | null): boolean {
  return one?.documentId === other?.documentId && one?.passage === other?.passage;
}

function asSentence(text: string): string {
  const plain = text.replace(/\s+/g, ' ').trim();
  return /[.!?。！？।؟…:]$/u.test(plain) ? plain : `${plain}.`;
}
