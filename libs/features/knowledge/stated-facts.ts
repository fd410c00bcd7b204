/* Facts as callers of the API state them. */
import type { EntityId } from '#libs/kernel/ids.ts';
import { invalid } from '#libs/platform/http/index.ts';

import {
  type EdgeToLearn,
  FactIds,
  type FactsToLearn,
  type NodeReference,
  type NodeToLearn,
  normalized,
} from './facts.ts';
import type { AddFactsBody } from './graph.schemas.ts';

export interface StatedFacts {
  readonly nodes: readonly NodeToLearn[];
  readonly edges: readonly EdgeToLearn[];
  /** Of all nodes and edges that are stated, ends of edges included, each once. */
  readonly nodeIds: readonly EntityId[];
  readonly edgeIds: readonly EntityId[];
  /** Ends of edges that are not among `nodes`, by the ids of their nodes. */
  readonly ends: ReadonlyMap<EntityId, End>;
}

/** A node as an edge refers to it; `at` is where the body does. */
interface End {
  readonly text: string;
  readonly isUuid: boolean;
  readonly at: readonly ['body', 'edges', number, 'source' | 'target'];
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Statements of callers of the API come from no document. */
const NOWHERE = { passage: null, offset: null };

/** @throws ValidationFailure for an edge that ends before it begins */
export function statedFacts(graphId: EntityId, body: AddFactsBody): StatedFacts {
  const ids = new FactIds(graphId);
  const nodes = (body.nodes ?? []).map(({ name, summary = null, labels }) => nodeOf(name, { summary, labels }));
  const ends = new Map<EntityId, End>();
  const edges = (body.edges ?? []).map((edge, index): EdgeToLearn => {
    for (const side of ['source', 'target'] as const) {
      const text = edge[side];
      const id = ids.node(referenceOf(text));
      if (!ends.has(id)) ends.set(id, { text, isUuid: UUID.test(text), at: ['body', 'edges', index, side] });
    }
    const { valid_at: validAt = null, invalid_at: invalidAt = null } = edge;
    if (validAt !== null && invalidAt !== null && invalidAt < validAt) {
      throw invalid(['body', 'edges', index, 'invalid_at'], 'it is before valid_at', invalidAt);
    }
    return {
      ...NOWHERE,
      name: edge.name ?? null,
      fact: edge.fact,
      source: referenceOf(edge.source),
      target: referenceOf(edge.target),
      validAt,
      invalidAt,
      isSingleValued: edge.single_valued ?? false,
    };
  });
  const stated = nodes.map(({ key }) => ids.node(key));
  const nodeIds = new Set([...stated, ...ends.keys()]);
  for (const id of stated) ends.delete(id);
  const edgeIds = new Set(edges.map((edge) => ids.edge(edge)));
  return { nodes, edges, nodeIds: [...nodeIds], edgeIds: [...edgeIds], ends };
}

/**
 * What the graph has to learn: the stated facts, and a node for each name that none has yet.
 *
 * @param known those nodes of `ends` that the graph has
 * @throws ValidationFailure for a uuid that is no node
 */
export function factsToLearn(
  { nodes, edges, ends }: StatedFacts,
  known: readonly { readonly uuid: EntityId }[],
): FactsToLearn {
  const present = new Set(known.map(({ uuid }) => uuid));
  const missing = [...ends].filter(([id]) => !present.has(id));
  const created = missing.map(([, { text, isUuid, at }]) => {
    if (isUuid) throw invalid(at, 'the graph has no node with this uuid', text);
    return nodeOf(text);
  });
  return { source: null, passages: [], nodes: [...nodes, ...created], edges, model: null };
}

function nodeOf(name: string, more: { summary?: string | null; labels?: readonly string[] | null | undefined } = {}) {
  const { summary = null, labels } = more;
  return { ...NOWHERE, key: normalized(name), name, summary, labels: labels ?? [] };
}

function referenceOf(text: string): NodeReference {
  return UUID.test(text) ? { id: text.toLowerCase() } : normalized(text);
}
