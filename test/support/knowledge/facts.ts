import type { EdgeToLearn, FactsToLearn, NodeToLearn } from '#libs/features/knowledge/index.ts';

const nowhere = { passage: null, offset: null };

export function nodeToLearn(name: string, more: Partial<NodeToLearn> = {}): NodeToLearn {
  return { ...nowhere, key: name, name, summary: null, labels: [], ...more };
}

export function edgeToLearn(source: string, target: string, more: Partial<EdgeToLearn> = {}): EdgeToLearn {
  const fact = `${source} follows ${target}`;
  const times = { validAt: null, invalidAt: null };
  return { ...nowhere, ...times, name: 'follows', fact, source, target, isSingleValued: false, ...more };
}

/** Facts of a document about things of the given names, each related to the one before. */
export function factsOfDocument(documentId: string, revision: number, names: readonly string[]): FactsToLearn {
  return {
    source: { documentId, revision, name: documentId, url: null },
    passages: names.map((name) => `About ${name}`),
    nodes: names.map((name, passage) => nodeToLearn(name, { passage, offset: 0 })),
    edges: names.slice(1).map((name, index) => edgeToLearn(name, names[index] ?? '')),
    model: null,
  };
}
