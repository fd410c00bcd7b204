import type { EntityId } from '#libs/kernel/ids.ts';

import type { Finding } from './report.ts';
import { answerOf, quotesOf } from './report.text.ts';
import { type Graphs, Research } from './report.reactor.ts';
import { byShare, cut, isRelevant, newFindings, withoutRepetitions } from './research.ts';
import { Terms } from './terms.ts';

const MAX_PASSAGE = 2_000;

/** A sentence or a fact of a graph, and where it is from. */
export interface FoundQuote {
  readonly text: string;
  /** The passage that it is from; null for a fact without one. */
  readonly passage: string | null;
  /** Null: a caller has stated it. */
  readonly source: { readonly document_id: string; readonly name: string; readonly url: string | null } | null;
}

export interface FoundQuotes {
  /** That together answer the query best, the best one first. */
  readonly quotes: readonly FoundQuote[];
  /** Words of the query that the graph has nothing on. */
  readonly missing: readonly string[];
}

/** What a graph says on a query, without a process: the sentences that begin a report. Null without the graph. */
export async function quotesFor(
  knowledge: Graphs,
  organizationId: EntityId,
  graphId: EntityId,
  query: string,
): Promise<FoundQuotes | null> {
  const research = new Research(knowledge, organizationId);
  const plan = await research.plan({ query, knowledgeGraph: graphId });
  if (plan.graphs.length === 0) return null;
  const findings: Finding[] = [];
  for (const question of plan.questions) {
    const found = await research.search(plan, question);
    const relevant = found.filter((one) => isRelevant(one, plan));
    findings.push(...newFindings(findings, relevant, plan));
  }
  const terms = new Terms(plan.terms);
  const distinct = withoutRepetitions(byShare(findings, terms));
  const quotes = answerOf(await quotesOf(distinct, terms), terms);
  return {
    quotes: quotes.map(({ text, source }) => ({
      text,
      passage: source?.passage ? cut(source.passage, MAX_PASSAGE) : null,
      source: source && { document_id: source.documentId, name: source.name, url: source.url },
    })),
    missing: plan.terms.filter(({ found }) => found === 'none').map(({ word }) => word),
  };
}
