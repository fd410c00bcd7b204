import { LRUCache } from 'lru-cache';

import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Document } from '#libs/platform/readmodel/index.ts';

import { storedGraph } from './graph.read.ts';
import type { Graph } from './graph.ts';
import type { GraphCounts, GraphIndex, GraphPoint } from './search/index.ts';

/** Of a graph after its first event. */
const NO_FACTS: GraphCounts = { nodes: 0, edges: 0, documents: 0 };
/** About 2 MB. */
const MAX_REMEMBERED = 10_000;

/** Graphs as the API answers them: with the counts at their revisions. */
export class GraphResources {
  readonly #index: GraphIndex;
  /** Counts as of a revision never change. A list of graphs would otherwise open the index of each. */
  readonly #remembered = new LRUCache<string, GraphCounts>({ max: MAX_REMEMBERED });

  constructor(index: GraphIndex) {
    this.#index = index;
  }

  /** @throws the faults of `GraphIndex` */
  of(graph: Graph): Promise<Buffer> {
    return this.#withCounts(storedGraph(graph), graph.changedRevision);
  }

  /**
   * The graph as it was at a point: the bytes of {@link of} at that revision. Null where that is before its first event.
   *
   * @param present the graph as it is now
   * @throws the faults of `GraphIndex`
   */
  async at(present: Graph, point: GraphPoint): Promise<Document | null> {
    const graph = storedGraph(present);
    const past = await this.#index.past(graph.id, point);
    if (past === null) return null;
    const { revision, ...changed } = past;
    const json = await this.#withCounts(
      revision === present.changedRevision ? graph : { ...graph, ...changed },
      revision,
    );
    return { revision, json };
  }

  async #withCounts(graph: ReturnType<typeof storedGraph>, revision: StreamRevision): Promise<Buffer> {
    const { nodes, edges, documents } = revision === 0 ? NO_FACTS : await this.#counts(graph.id, revision);
    return Buffer.from(JSON.stringify({ ...graph, node_count: nodes, edge_count: edges, document_count: documents }));
  }

  async #counts(graphId: EntityId, revision: StreamRevision): Promise<GraphCounts> {
    const key = `${graphId} ${revision}`;
    const counts = this.#remembered.get(key) ?? (await this.#index.counts(graphId, revision));
    this.#remembered.set(key, counts);
    return counts;
  }
}
