/** Facts of a graph for tests; ids are derived from names. */
import { derivedId } from '#libs/kernel/ids.ts';
import type { FactsLearned, GraphEvent } from '#libs/features/knowledge/graph.ts';

type Node = FactsLearned['nodes'][number];
type Edge = FactsLearned['edges'][number];

const NAMESPACE = '6f1c8a52-9d0e-4b7a-8f43-2c5d1e7b9a60';
const idOf = (...key: readonly unknown[]): string => derivedId(NAMESPACE, JSON.stringify(key));
const NOWHERE = { passage: null, offset: null };

export function node(name: string, summary: string | null = null, labels: readonly string[] = []): Node {
  return { id: idOf('node', name), name, summary, labels: [...labels], ...NOWHERE };
}

/** @param from name of a node, as is `to` */
export function edge(
  from: string,
  to: string,
  fact: string,
  more: Partial<Pick<Edge, 'name' | 'validAt' | 'invalidAt' | 'isSingleValued'>> = {},
): Edge {
  const stated = { name: 'relation', fact, validAt: null, invalidAt: null, isSingleValued: false, ...NOWHERE, ...more };
  const id = idOf('edge', from, stated.name, to, fact, stated.validAt);
  return { ...stated, id, source: idOf('node', from), target: idOf('node', to) };
}

/** @param more.document id of the document that states the facts; absent: none */
export function learned(
  nodes: readonly Node[],
  more: { readonly document?: string | undefined; readonly revision?: number; readonly edges?: readonly Edge[] } = {},
): GraphEvent {
  const { document, revision = 0, edges = [] } = more;
  const source = document === undefined ? null : { documentId: document, revision, name: document, url: null };
  return { type: 'FactsLearned.v1', data: { source, passages: [], nodes: [...nodes], edges: [...edges], model: null } };
}
