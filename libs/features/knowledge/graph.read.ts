import { accept } from '#libs/kernel/decider.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  digestFacet,
  Entities,
  entity,
  type EntityCore,
  type EntityResult,
  type NotFound,
  type Presentation,
} from '#libs/platform/entity/index.ts';

import { appendsOf, type FactsToLearn } from './facts.ts';
import { GRAPH, type Graph, graphCodec, type GraphEvent, graphFold, type GraphState } from './graph.ts';
import type { GraphCounts, GraphSearch } from './search/index.ts';

export type GraphFacets = { readonly name: string };

export const graphEntity = entity<GraphState, GraphEvent, GraphFacets>({
  category: GRAPH,
  version: 1,
  codec: graphCodec,
  fold: graphFold,
  // Without the counts, which the search index holds: replies add them.
  resource: ({ id, name, description, createdAt, modified }) => ({
    id,
    name,
    description,
    created: createdAt,
    modified,
  }),
  facets: ({ name }) => ({ name: digestFacet(name) }),
});

/** Of a graph after its first event. */
const NO_FACTS: GraphCounts = { nodes: 0, edges: 0, documents: 0 };
/** About 2 MB. */
const MAX_REMEMBERED = 10_000;

/** Graphs as the API answers them: with the counts at their revisions. Throws the faults of `GraphSearch`. */
export function withCounts(index: Pick<GraphSearch, 'counts'>): Presentation<Graph> {
  // Counts as of a revision never change. A list of graphs would otherwise open the index of each.
  const remembered = recentlyUsed<string, GraphCounts>(MAX_REMEMBERED);
  const countsOf = async ({ id, changedRevision }: Graph): Promise<GraphCounts> => {
    if (changedRevision === 0) return NO_FACTS;
    const key = `${id} ${changedRevision}`;
    const counts = remembered.get(key) ?? (await index.counts(id, changedRevision));
    remembered.set(key, counts);
    return counts;
  };
  return {
    isOfRevision: true,
    of: (graphs) =>
      Promise.all(
        graphs.map(async (graph) => {
          const { nodes, edges, documents } = await countsOf(graph);
          const counts = { node_count: nodes, edge_count: edges, document_count: documents };
          return { ...graphEntity.resource(graph), ...counts };
        }),
      ),
  };
}

/** A graph after a command, or null if the organization has none. */
export type GraphResult = EntityResult<Graph, NotFound>;

/** The graphs, and the facts that are written to them. */
export class Graphs extends Entities<GraphState, GraphEvent, GraphFacets> {
  constructor(core: EntityCore) {
    super(graphEntity, core);
  }

  /**
   * Appends facts to a graph, in their order. Commands of one process that write to the same graph share appends.
   * Learning the same facts again does not change what the graph states.
   *
   * Facts beyond one append are several commands: readers may see a part of them, and a failure may leave a part behind.
   *
   * @param context its command id identifies the facts: a step that is repeated passes the same one
   * @throws the faults of `CommandHandler.handle`
   */
  async learn(context: CommandContext, graphId: EntityId, facts: readonly FactsToLearn[]): Promise<GraphResult> {
    const appends = appendsOf(graphId, facts);
    let result = await this.update(context, graphId, () => accept(...(appends[0] ?? [])));
    for (const [index, events] of appends.entries()) {
      if (index === 0) continue;
      if (!result.ok) return result;
      const part = { ...context, commandId: derivedId(context.commandId, `part ${index}`) };
      result = await this.update(part, graphId, () => accept(...events));
    }
    return result;
  }

  /**
   * Withdraws what the graph has learnt from a document: the facts of its content before `beforeRevision`, or of all its
   * content (null). They stay in the log.
   */
  withdraw(
    context: CommandContext,
    graphId: EntityId,
    documentId: EntityId,
    beforeRevision: number | null,
  ): Promise<GraphResult> {
    const withdrawn: GraphEvent = { type: 'FactsWithdrawn.v1', data: { documentId, beforeRevision } };
    return this.update(context, graphId, () => accept(withdrawn));
  }

  /** The graphs of an organization that were created last, newest first. */
  async newest(organizationId: EntityId, size: number): Promise<readonly Pick<Graph, 'id' | 'name'>[]> {
    return (await this.states(organizationId, {}, { size, offset: 0, after: null })).states;
  }
}
