/* Writes a report from findings by quoting them: the same findings give the same text. */
import {
  answerOf,
  byShare,
  excerptsOf,
  type Finding,
  isThing,
  type Plan,
  type Quote,
  quotesOf,
  saysTheSame,
  scoreOf,
  Terms,
  withoutRepetitions,
} from '#libs/features/knowledge/index.ts';

import { Citations, escaped, headingOf } from './citations.ts';

const MAX_SUBJECTS = 8;
const MAX_OF_SUBJECT = 4;
/** The material of a report. */
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
      ? [`## Answer\n\n${unquoted(plan, excerptsOf(distinct, terms), citations)}`]
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
  /** Sentences that were left out of the body. */
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

/** Where no sentence answers: parts of what was found; only without any does the report say that there is nothing. */
function unquoted(plan: Plan, excerpts: readonly Quote[], citations: Citations): string {
  if (excerpts.length === 0) return nothingFound(plan);
  const lines = excerpts.map((excerpt) => cited(excerpt, citations));
  return `No whole sentence answers this question. What was found on it:\n\n${lines.join('\n')}`;
}

function nothingFound({ graphs, terms }: Plan): string {
  if (graphs.length === 0) return 'There is no knowledge graph to search.';
  const where = graphs.length === 1 ? 'The knowledge graph holds' : 'The knowledge graphs hold';
  return `${where} nothing on this question.${terms.length === 0 ? ' It has no words to search for.' : ''}`;
}

/** The searches, and the words for which nothing was found. */
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
