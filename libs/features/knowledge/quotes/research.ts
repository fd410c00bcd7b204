import type { EntityId } from '#libs/kernel/ids.ts';

import type { Graph } from '../graph.ts';
import type { FactIds, FoundEdge, FoundNode, Question, SearchResult } from '../search/index.ts';
import type { Finding, Plan, Term } from './finding.ts';
import {
  byShare,
  cut,
  findingOf,
  type Found,
  isRelevant,
  newFindings,
  questionsOf,
  textOf,
  withoutRepetitions,
} from './findings.ts';
import { answerOf, excerptsOf, quotesOf } from './quoting.ts';
import { occurrenceOf, subjectWords, Terms, weightOf } from './terms.ts';

/** Graphs that are searched for a query that names none. */
const MAX_GRAPHS = 5;
/** Results of a search, of nodes and of edges. */
const RESULTS = 12;
const EDGES_OF_SEED = 8;
const MAX_PASSAGE = 2_000;

export interface KnownFacts {
  readonly nodes: readonly FoundNode[];
  readonly edges: readonly FoundEdge[];
}

export type GraphName = Pick<Graph, 'id' | 'name'>;

/** Graphs as research reads them. */
export interface SearchableGraphs {
  /** Null for a missing or deleted graph, or one of another organization. */
  graph(organizationId: EntityId, id: EntityId): Promise<Graph | null>;
  /**
   * Null for a missing or deleted graph, one of another organization, or before the first event of the graph. See
   * `GraphSearch` for errors.
   */
  search(organizationId: EntityId, graphId: EntityId, question: Question): Promise<SearchResult | null>;
  /** Nodes and edges by their ids: those that the graph has. Null without the graph, as `search`. */
  facts(organizationId: EntityId, graphId: EntityId, ids: FactIds): Promise<KnownFacts | null>;
  /** The newest graphs of the organization. @param size at most 100 */
  newestGraphs(organizationId: EntityId, size: number): Promise<readonly GraphName[]>;
}

interface Searched {
  readonly query: string;
  /** Null: the newest graphs of the organization. */
  readonly knowledgeGraph: EntityId | null;
}

/** The graphs of one organization as research reads them. A graph that was deleted meanwhile holds nothing. */
export class Research {
  readonly #knowledge: SearchableGraphs;
  readonly #organizationId: string;

  constructor(knowledge: SearchableGraphs, organizationId: string) {
    this.#knowledge = knowledge;
    this.#organizationId = organizationId;
  }

  /** Whether a graph that is named was deleted meanwhile. */
  async isGraphGone({ knowledgeGraph }: Pick<Searched, 'knowledgeGraph'>): Promise<boolean> {
    return knowledgeGraph !== null && (await this.#knowledge.graph(this.#organizationId, knowledgeGraph)) === null;
  }

  async plan({ query, knowledgeGraph }: Searched): Promise<Plan> {
    const graphs = await this.#graphs(knowledgeGraph);
    let all = 0;
    const names: string[] = [];
    for (const { id } of graphs) {
      const newest = await this.#knowledge.search(this.#organizationId, id, { query: '*', limit: 1 });
      all += (newest?.total_nodes ?? 0) + (newest?.total_edges ?? 0);
      const found = await this.#knowledge.search(this.#organizationId, id, { query, limit: RESULTS });
      names.push(...(found?.nodes ?? []).map(({ name }) => name));
    }
    const words = subjectWords(query);
    const terms: Term[] = [];
    for (const word of words) terms.push(await this.#term(graphs, word, all));
    return { graphs, questions: questionsOf(query, names), terms };
  }

  async #graphs(knowledgeGraph: string | null): Promise<Plan['graphs']> {
    if (knowledgeGraph === null) return [...(await this.#knowledge.newestGraphs(this.#organizationId, MAX_GRAPHS))];
    const graph = await this.#knowledge.graph(this.#organizationId, knowledgeGraph);
    return graph === null ? [] : [{ id: graph.id, name: graph.name }];
  }

  async #term(graphs: Plan['graphs'], word: string, all: number): Promise<Term> {
    let having = 0;
    const texts: string[] = [];
    for (const { id } of graphs) {
      const found = await this.#knowledge.search(this.#organizationId, id, { query: word, limit: 5 });
      if (found === null) continue;
      having += found.total_nodes + found.total_edges;
      const facts = [...found.nodes, ...found.edges].map((one) => ({ ...one, graphId: id }));
      texts.push(...facts.map((one) => textOf(findingOf(one, 0, new Map()))));
    }
    const occurrence = occurrenceOf(word, texts);
    return { word, weight: weightOf(occurrence.found === 'none' ? 0 : having, all), ...occurrence };
  }

  async search({ graphs }: Plan, question: string): Promise<Finding[]> {
    const findings: Finding[] = [];
    for (const { id } of graphs) {
      const found = await this.#knowledge.search(this.#organizationId, id, { query: question, limit: RESULTS });
      if (found === null) continue;
      findings.push(...(await this.#findings(id, [...found.nodes, ...found.edges], 0)));
    }
    return findings;
  }

  /**
   * The edges of nodes, and the nodes at their other ends. Edges are found by the names of the nodes, which their facts
   * contain. Beyond the first hop only edges count that have a word of the query.
   */
  async follow(plan: Plan, seeds: readonly Finding[], hop: number): Promise<Finding[]> {
    const terms = new Terms(plan.terms);
    const findings: Finding[] = [];
    for (const { graphId, uuid, name } of seeds) {
      const found = await this.#knowledge.search(this.#organizationId, graphId, { query: name, limit: 50 });
      const edges = (found?.edges ?? [])
        .filter(({ source_node_uuid, target_node_uuid }) => [source_node_uuid, target_node_uuid].includes(uuid))
        .filter(({ fact }) => hop === 1 || terms.in(fact).size > 0)
        .slice(0, EDGES_OF_SEED);
      const ends = edges.flatMap((edge) => [edge.source_node_uuid, edge.target_node_uuid]);
      const others = [...new Set(ends)].filter((id) => id !== uuid);
      const known = await this.#knowledge.facts(this.#organizationId, graphId, { nodes: others, edges: [] });
      findings.push(...(await this.#findings(graphId, [...edges, ...(known?.nodes ?? [])], hop)));
    }
    return findings;
  }

  async #findings(graphId: string, found: readonly (FoundNode | FoundEdge)[], hop: number): Promise<Finding[]> {
    const items: Found[] = found.map((one) => ({ ...one, graphId }));
    const ends = items.flatMap((one) => ('fact' in one ? [one.source_node_uuid, one.target_node_uuid] : []));
    const ids = { nodes: [...new Set(ends)], edges: [] };
    const known = ends.length === 0 ? null : await this.#knowledge.facts(this.#organizationId, graphId, ids);
    const names = new Map((known?.nodes ?? []).map(({ uuid, name }) => [uuid, name]));
    return items.map((one) => findingOf(one, hop, names));
  }
}

/** A sentence or a fact of a graph, and where it is from. */
export interface FoundQuote {
  readonly text: string;
  /** The passage that it is from; null for a fact without one. */
  readonly passage: string | null;
  /** Null: a caller has stated it. */
  readonly source: { readonly document_id: string; readonly name: string; readonly url: string | null } | null;
}

export interface FoundQuotes {
  /** Sentences that together answer the query best, the best one first. */
  readonly quotes: readonly FoundQuote[];
  /** Words of the query that the graph has nothing on. */
  readonly missing: readonly string[];
}

/** The sentences that would begin a report on the query, without a process. Null without the graph. */
export async function quotesFor(
  knowledge: SearchableGraphs,
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
  const sentences = answerOf(await quotesOf(distinct, terms), terms);
  const quotes = sentences.length > 0 ? sentences : excerptsOf(distinct, terms);
  return {
    quotes: quotes.map(({ text, source }) => ({
      text,
      passage: source?.passage ? cut(source.passage, MAX_PASSAGE) : null,
      source: source && { document_id: source.documentId, name: source.name, url: source.url },
    })),
    missing: plan.terms.filter(({ found }) => found === 'none').map(({ word }) => word),
  };
}
