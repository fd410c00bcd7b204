/** Knowledge: graphs of facts, and search in them. One stream, `graph-<id>`, for each graph. */
import { join } from 'node:path';

import type { EntityId } from '#libs/kernel/ids.ts';
import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { type HttpApp, invalid } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import type { FactsToLearn } from './facts.ts';
import { graphRoutes } from './graph.http.ts';
import { graphEntity, type GraphResult, Graphs } from './graph.read.ts';
import type { SearchableGraphs } from './quotes/research.ts';
import { GraphSearch, searchRoutes } from './search/index.ts';

export type { EdgeToLearn, FactsToLearn, NodeToLearn } from './facts.ts';
export { graphEntity } from './graph.read.ts';
export { type Finding, finding, type Plan, plan, type Source, type Term } from './quotes/finding.ts';
export { byShare, cut, isRelevant, isThing, newFindings, seedsOf, withoutRepetitions } from './quotes/findings.ts';
export { answerOf, excerptsOf, type Quote, quotesOf, saysTheSame, scoreOf } from './quotes/quoting.ts';
export { quotesFor, Research, type SearchableGraphs } from './quotes/research.ts';
export { plainTextOf } from './quotes/sentences.ts';
export { Terms } from './quotes/terms.ts';
export type { Question, SearchResult } from './search/index.ts';

/** Knowledge as other features use it. */
export interface Knowledge extends SearchableGraphs {
  /** See `Graphs.learn`. */
  learn(context: CommandContext, graphId: EntityId, facts: readonly FactsToLearn[]): Promise<GraphResult>;
  /** See `Graphs.withdraw`. */
  withdraw(
    context: CommandContext,
    graphId: EntityId,
    documentId: EntityId,
    beforeRevision: number | null,
  ): Promise<GraphResult>;
  /** To be called after much was learned. See `GraphSearch.prepare`. */
  prepareSearch(graphId: EntityId): void;
}

export const knowledgeModule = { name: 'knowledge', projections: [graphEntity.projection] } satisfies Module;

/** @param embedding the endpoint that turns texts into vectors; null: search compares words alone */
export function openKnowledge(
  core: Core,
  embedding: EmbeddingConfig | null,
): Knowledge & { routes(app: HttpApp): void } {
  const graphs = new Graphs(core);
  const { store, metrics, log, cacheDir } = core;
  const index = new GraphSearch({ store, metrics, log, folder: join(cacheDir, 'search'), embedding });
  core.closeFirst.push(() => index.close());
  const knowledge: Knowledge = {
    graph: (organizationId, id) => graphs.find(organizationId, id),
    learn: (context, id, facts) => graphs.learn(context, id, facts),
    withdraw: (context, id, documentId, before) => graphs.withdraw(context, id, documentId, before),
    search: async (organizationId, id, question) =>
      (await graphs.find(organizationId, id)) && index.search(id, question),
    facts: async (organizationId, id, ids) => (await graphs.find(organizationId, id)) && index.facts(id, ids),
    prepareSearch: (id) => index.prepare(id),
    newestGraphs: (organizationId, size) => graphs.newest(organizationId, size),
  };
  return {
    ...knowledge,
    routes(app) {
      graphRoutes(app, graphs, index);
      searchRoutes(app, knowledge.search);
    },
  };
}

/**
 * Checks the `knowledge_graph` of a request; null names none.
 *
 * @throws ValidationFailure 422 for a graph that the organization does not have
 */
export async function requireGraph(
  knowledge: Pick<Knowledge, 'graph'>,
  organizationId: EntityId,
  id: EntityId | null,
  place: 'body' | 'query' = 'body',
): Promise<void> {
  if (id === null || (await knowledge.graph(organizationId, id)) !== null) return;
  throw invalid([place, 'knowledge_graph'], 'there is no such knowledge graph', id);
}
