import type { EntityId } from '#libs/kernel/ids.ts';
import { invalid } from '#libs/platform/http/index.ts';

import type { Graph } from './graph.ts';

interface Graphs {
  graph(organizationId: EntityId, id: EntityId): Promise<Graph | null>;
}

/**
 * Checks the `knowledge_graph` of a request; null names none.
 *
 * @throws ValidationFailure 422 for a graph that the organization does not have
 */
export async function requireGraph(
  knowledge: Graphs,
  organizationId: EntityId,
  id: EntityId | null,
  place: 'body' | 'query' = 'body',
): Promise<void> {
  if (id === null || (await knowledge.graph(organizationId, id)) !== null) return;
  throw invalid([place, 'knowledge_graph'], 'there is no such knowledge graph', id);
}
