/** Knowledge: graphs of facts, and search in them. One stream, `graph-<id>`, for each graph. */
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import type { FactsToLearn } from './facts.ts';
import { graphRoutes } from './graph.http.ts';
import { graphEntity, type GraphResult, Graphs } from './graph.read.ts';
import type { Graph } from './graph.ts';
import {
  type FactIds,
  type FoundEdge,
  type FoundNode,
  openGraphIndex,
  type Question,
  type SearchResult,
  searchRoutes,
} from './search/index.ts';

export type { EdgeToLearn, FactsToLearn, NodeToLearn } from './facts.ts';
export { graphEntity } from './graph.read.ts';
export { requireGraph } from './require-graph.ts';
export type { GraphResult } from './graph.read.ts';
export type { FactSource, Graph } from './graph.ts';
export { allowedTypos, isStopWord, queryWords, stemOf, typosBetween, wordsOf } from './search/index.ts';
export type { FoundEdge, FoundNode, FoundSource, GraphCounts, Question, SearchResult } from './search/index.ts';

/** Knowledge as other features use it. */
export interface Knowledge {
  /** Null for a missing or deleted graph, or one of another organization. */
  graph(organizationId: EntityId, id: EntityId): Promise<Graph | null>;
  /** See `Graphs.learn`. */
  learn(context: CommandContext, graphId: EntityId, facts: readonly FactsToLearn[]): Promise<GraphResult>;
  /** See `Graphs.withdraw`. */
  withdraw(
    context: CommandContext,
    graphId: EntityId,
    documentId: EntityId,
    beforeRevision: number | null,
  ): Promise<GraphResult>;
  /**
   * Null for a missing or deleted graph, one of another organization, or before the first event of the graph. See
   * `GraphIndex` for errors.
   */
  search(organizationId: EntityId, graphId: EntityId, question: Question): Promise<SearchResult | null>;
  /** Nodes and edges by their ids: those that the graph has. Null without the graph, as `search`. */
  facts(organizationId: EntityId, graphId: EntityId, ids: FactIds): Promise<KnownFacts | null>;
  /** To be called after much was learned. See `GraphIndex.prepare`. */
  prepareSearch(graphId: EntityId): void;
  /** The newest graphs of the organization. @param size at most 100 */
  newestGraphs(organizationId: EntityId, size: number): Promise<readonly GraphName[]>;
}

export interface KnownFacts {
  readonly nodes: readonly FoundNode[];
  readonly edges: readonly FoundEdge[];
}

export type GraphName = Pick<Graph, 'id' | 'name'>;

export const knowledgeModule = {
  name: 'knowledge',
  projections: [graphEntity.projection],
  create(core: Core) {
    const graphs = new Graphs(core);
    const index = openGraphIndex(core);
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
    const routes = (app: HttpApp): void => {
      graphRoutes(app, { graphs, index });
      searchRoutes(app, knowledge.search);
    };
    return { knowledge, routes };
  },
} satisfies Module;
