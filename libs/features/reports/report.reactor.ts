import type { FoundEdge, FoundNode, Knowledge } from '#libs/features/knowledge/index.ts';
import type { Model } from '#libs/platform/model/index.ts';
import { reactor } from '#libs/platform/reactors/index.ts';

import {
  type Finding,
  hasEnded,
  type Plan,
  quoted,
  type Report,
  type ReportEvent,
  type ReportState,
  type Term,
} from './report.ts';
import { reportEntity } from './report.read.ts';
import { writeReport } from './report.text.ts';
import { findingOf, type Found, isRelevant, newFindings, questionsOf, seedsOf, textOf } from './research.ts';
import { occurrenceOf, subjectWords, Terms, weightOf } from './terms.ts';

export type Graphs = Pick<Knowledge, 'graph' | 'search' | 'facts' | 'newestGraphs'>;

/** Graphs that are searched for a report that names none. */
const MAX_GRAPHS = 5;
/** Results of a search, of nodes and of edges. */
const RESULTS = 12;
const MAX_HOPS = 2;
/** Nodes whose edges a hop follows, and edges of each. */
const SEEDS = 6;
const EDGES_OF_SEED = 8;

export const GRAPH_GONE: ReportEvent = {
  type: 'ReportFailed.v1',
  data: { reason: 'the knowledge graph was deleted' },
};

/**
 * Researches in graphs: plans, searches for each question, follows edges. Each step is one event, which triggers the next,
 * so a step that a worker did not finish is done by another one. The last one writes the report, unless a model is to
 * write it from what was found: see `reportWriting`.
 *
 * @param model null: reports are extractive
 */
export function reportResearch(knowledge: Graphs, model: Pick<Model, 'name'> | null) {
  return reactor<ReportState, ReportEvent>({
    name: 'report-research',
    on: ['ReportRequested.v1', 'ResearchPlanned.v1', 'GraphSearched.v1', 'EdgesFollowed.v1'],
    process: reportEntity.projection,
    isEnded: (report) => report !== null && (hasEnded(report) || report.phase === 'writing'),
    async handle(_event, { state: report, organizationId }) {
      if (report === null) return [];
      const research = new Research(knowledge, organizationId);
      if (await research.isGraphGone(report)) return [GRAPH_GONE];
      return [await nextStep(research, report, model)];
    },
    giveUp(_report, { reason }) {
      const why = reason === 'deadline' ? 'the research took too long' : 'a step of the research failed repeatedly';
      return [{ type: 'ReportFailed.v1', data: { reason: why } }];
    },
    limits: { concurrency: 8 },
  });
}

async function nextStep(research: Research, report: Report, model: Pick<Model, 'name'> | null): Promise<ReportEvent> {
  const { plan, searched, hops, findings } = report;
  if (plan === null) return { type: 'ResearchPlanned.v1', data: await research.plan(report) };
  const question = plan.questions[searched];
  if (question !== undefined) {
    const found = await research.search(plan, question);
    const relevant = found.filter((one) => isRelevant(one, plan));
    return { type: 'GraphSearched.v1', data: { findings: newFindings(findings, relevant, plan) } };
  }
  const hop = hops + 1;
  const seeds = hop > MAX_HOPS ? [] : seedsOf(findings, hop, SEEDS);
  if (seeds.length > 0) {
    const found = await research.follow(plan, seeds, hop);
    return { type: 'EdgesFollowed.v1', data: { hop, findings: newFindings(findings, found, plan) } };
  }
  // A model that is given nothing can cite nothing.
  if (model !== null && findings.length > 0) return { type: 'WritingStarted.v1', data: { model: model.name } };
  return { type: 'ReportWritten.v2', data: quoted(await writeReport({ ...report, plan })) };
}

/** The graphs of one organization as research reads them. A graph that was deleted meanwhile holds nothing. */
export class Research {
  readonly #knowledge: Graphs;
  readonly #organizationId: string;

  constructor(knowledge: Graphs, organizationId: string) {
    this.#knowledge = knowledge;
    this.#organizationId = organizationId;
  }

  /** Whether the report names a graph that was deleted meanwhile. */
  async isGraphGone({ knowledgeGraph }: Pick<Report, 'knowledgeGraph'>): Promise<boolean> {
    return knowledgeGraph !== null && (await this.#knowledge.graph(this.#organizationId, knowledgeGraph)) === null;
  }

  async plan({ query, knowledgeGraph }: Pick<Report, 'query' | 'knowledgeGraph'>): Promise<Plan> {
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
