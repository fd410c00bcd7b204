/* Writes a report from findings by quoting them: the same findings give the same text. */
import { setImmediate as nextTurn } from 'node:timers/promises';

import { stemOf, wordsOf } from '#libs/features/knowledge/index.ts';

import { Citations, escaped, headingOf } from './citations.ts';
import type { Finding, Plan, Source } from './report.ts';
import { byShare, isThing, textOf, withoutRepetitions } from './research.ts';
import { plainTextOf, sentencesOf } from './sentences.ts';
import { Terms } from './terms.ts';

const MAX_ANSWER = 5;
/** The answer has no sentence that scores less than this share of the best one. */
const LEAST_OF_BEST = 0.3;
const MAX_SUBJECTS = 8;
const MAX_OF_SUBJECT = 4;
/** What a word of the query counts in the title above a sentence; 1 in the sentence. */
const IN_TITLE = 0.5;
/** What a word of the query counts that the answer has already. */
const REPEATED = 0.4;
/** What words count that stand side by side as in the query, besides what each counts. */
const IN_PHRASE = 0.2;
/** What the first sentence counts under a title that has half of the query, and one that refers to the one before it. */
const FIRST = 1.3;
const DEPENDENT = 0.6;
const REFERS_BACK =
  /^(?:\(|(?:this|that|these|those|it|its|they|their|he|she|such|thus|therefore|however|also|either|again|then|so|but|and|or|for example|in this case|in addition|otherwise|similarly|instead|note that|here|it's|setting it)\b)/i;
/** What a fact counts that was derived from a document, beside the sentences of documents. */
const DERIVED = 0.6;
/** Words of the shorter one that two sentences share if they say the same. */
const SAME = 0.7;

/** A sentence or fact that can be quoted. */
interface Quote {
  readonly text: string;
  readonly finding: Finding;
  readonly source: Source | null;
  readonly terms: ReadonlySet<number>;
  readonly titleTerms: ReadonlySet<number>;
  readonly stems: ReadonlySet<string>;
  /** What the sentence counts by its place, its words side by side, and the text that it is from. */
  readonly phrases: number;
  readonly factor: number;
}

/** What a report is written from. */
export interface Researched {
  readonly query: string;
  readonly plan: Plan;
  readonly findings: readonly Finding[];
}

/** @param reason why the model that was to write the report has not done so; null without one */
export async function writeReport(researched: Researched, reason: string | null = null): Promise<string> {
  const { plan, findings } = researched;
  const terms = new Terms(plan.terms);
  const distinct = withoutRepetitions(byShare(findings, terms));
  const quotes = await quotesOf(distinct, terms);
  const answer = answerOf(quotes, terms);
  const citations = new Citations(plan);
  const body =
    answer.length === 0
      ? [`## Answer\n\n${nothingFound(plan)}`]
      : [
          `## Answer\n\n${answer.map((quote) => cited(quote, citations)).join('\n')}`,
          subjectsSection(distinct, quotes, answer, terms, citations),
        ];
  const repeated = findings.length - distinct.length;
  const method =
    `Extractive report: sentences quoted from ${graphNames(plan)} by their words. ` +
    `No language model wrote or checked it${reason === null ? '' : `: ${reason}`}.`;
  const leftOut = `Left out: ${counted(repeated, 'passage')} that ${repeated === 1 ? 'says' : 'say'} nearly the same as another one.`;
  return reportOf(researched, { method, body, citations, notes: repeated === 0 ? [] : [leftOut] });
}

export interface Parts {
  /** A sentence that says how the report was written. */
  readonly method: string;
  /** Sections, as Markdown. */
  readonly body: readonly string[];
  /** Of the body. */
  readonly citations: Citations;
  /** What was left out of the body: sentences. */
  readonly notes: readonly string[];
}

/** The whole report. */
export function reportOf(researched: Researched, { method, body, citations, notes }: Parts): string {
  const parts = [
    `# ${escaped(researched.query)}`,
    `*${method}*`,
    ...body,
    researchSection(researched, notes),
    citations.section(),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** The quote as an item of a list, with the heading that it is from. */
function cited(quote: Quote, citations: Citations): string {
  const heading = headingOf(quote.finding);
  const title = heading === null ? '' : `**${escaped(heading)}**: `;
  // Not a heading or a list within the item of the list.
  const text = escaped(quote.text).replace(/^(?=[#+-])|(?<=^\d+)(?=[.)]\s)/, '\\');
  return `- ${title}${text} [${citations.numberOf(quote)}]`;
}

/** Markdown takes about a millisecond for each passage to read: others have their turns between two of them. */
export async function quotesOf(findings: readonly Finding[], terms: Terms): Promise<Quote[]> {
  const quotes: Quote[] = [];
  for (const finding of findings) {
    quotes.push(...quotesIn(finding, terms));
    await nextTurn();
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

function scoreOf(quote: Quote, terms: Terms, covered: ReadonlySet<number>): number {
  const worth = (index: number) => terms.weightOf([index]) * (covered.has(index) ? REPEATED : 1);
  let score = quote.phrases;
  for (const index of quote.terms) score += worth(index);
  for (const index of quote.titleTerms) if (!quote.terms.has(index)) score += IN_TITLE * worth(index);
  return score * quote.factor;
}

function saysTheSame(one: Quote, other: Quote): boolean {
  let shared = 0;
  for (const stem of one.stems) if (other.stems.has(stem)) shared += 1;
  return shared > SAME * Math.min(one.stems.size, other.stems.size);
}

function isSamePassage(one: Source | null, other: Source | null): boolean {
  return one?.documentId === other?.documentId && one?.passage === other?.passage;
}

/** By subject, a thing with its facts, or a document with its sections; in the order of the findings. */
function subjectsSection(
  findings: readonly Finding[],
  quotes: readonly Quote[],
  answer: readonly Quote[],
  terms: Terms,
  citations: Citations,
): string {
  const subjects = new Map<string, string[]>();
  const used = [...answer];
  for (const finding of findings) {
    const subject = subjectOf(finding);
    const lines = subjects.get(subject) ?? [];
    if (lines.length >= MAX_OF_SUBJECT || (lines.length === 0 && subjects.size >= MAX_SUBJECTS)) continue;
    const own = quotes.filter((quote) => isAbout(quote, finding) && !used.some((other) => saysTheSame(other, quote)));
    const scored = own.map((quote) => ({ quote, score: scoreOf(quote, terms, new Set()) }));
    const best = scored.toSorted((one, other) => other.score - one.score)[0]?.quote;
    if (best === undefined) continue;
    used.push(best);
    subjects.set(subject, [...lines, cited(best, citations)]);
  }
  if (subjects.size === 0) return '';
  const sections = [...subjects].map(([subject, lines]) => `### ${escaped(subject)}\n\n${lines.join('\n')}`);
  return ['## Findings', ...sections].join('\n\n');
}

/** A section is about the query where its sentences have its words; all facts of a thing are about it. */
function isAbout(quote: Quote, finding: Finding): boolean {
  return quote.finding === finding && (quote.terms.size > 0 || finding.edge !== null || isThing(finding));
}

function subjectOf(finding: Finding): string {
  const named = finding.edge !== null || isThing(finding) ? finding.name : '';
  return named || finding.sources[0]?.name || finding.name || 'Other facts';
}

function nothingFound({ graphs, terms }: Plan): string {
  if (graphs.length === 0) return 'There is no knowledge graph to search.';
  const where = graphs.length === 1 ? 'The knowledge graph holds' : 'The knowledge graphs hold';
  return `${where} nothing on this question.${terms.length === 0 ? ' It has no words to search for.' : ''}`;
}

/** What was searched for, and which words nothing was found for. */
function researchSection({ plan, findings }: Researched, notes: readonly string[]): string {
  const { terms, graphs, questions } = plan;
  if (graphs.length === 0) return '';
  const documents = new Set(findings.flatMap(({ sources }) => sources.map(({ documentId }) => documentId)));
  const missing = terms.filter(({ found }) => found === 'none').map(({ word }) => word);
  const lines = [
    `- Searched for: ${questions.map((question) => `"${escaped(question)}"`).join(', ')}.`,
    `- Relevant: ${counted(findings.length, 'fact')} of ${counted(documents.size, 'document')}.`,
    ...notes.map((note) => `- ${note}`),
  ];
  if (missing.length > 0) lines.push(`- Nothing was found for: ${missing.map(escaped).join(', ')}.`);
  for (const { word, found, correction } of terms) {
    if (found !== 'similar' || correction === null) continue;
    lines.push(`- Nothing was found for ${escaped(word)}, so ${escaped(correction)} was taken for it.`);
  }
  return `## Research\n\n${lines.join('\n')}`;
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

export function graphNames({ graphs }: Plan): string {
  if (graphs.length === 0) return 'no knowledge graph';
  const names = graphs.map(({ name }) => `"${escaped(name)}"`).join(', ');
  return graphs.length === 1 ? `the knowledge graph ${names}` : `the knowledge graphs ${names}`;
}

function asSentence(text: string): string {
  const plain = text.replace(/\s+/g, ' ').trim();
  return /[.!?。！？।؟…:]$/u.test(plain) ? plain : `${plain}.`;
}
