import type { NodeToLearn } from '#libs/features/knowledge/index.ts';
import { admitText } from '#libs/kernel/text.ts';

import type { ExtractedEdge, Extraction } from './extraction.ts';
import { MAX_PASSAGE, type Range } from './split-text.ts';

const MAX_NODES = 2_000;
const MAX_EDGES = 5_000;
const MAX_NAME = 300;
const MAX_SUMMARY = 1_000;
const MAX_FACT = 1_000;

/** Collects the facts of a document, each once, within limits. */
export class FactCollector {
  readonly documentId: string;
  readonly #passages: (Range & { readonly text: string })[] = [];
  readonly #lines: string[] = [];
  readonly #nodes = new Map<string, NodeToLearn>();
  readonly #edges = new Map<string, ExtractedEdge>();
  #truncated = false;

  constructor(documentId: string) {
    this.documentId = documentId;
  }

  /** All are added before the facts, in the order of the text. @returns its index */
  addPassage(text: string, { start, end }: Range): number {
    return this.#passages.push({ start, end, text: text.slice(start, end) }) - 1;
  }

  /**
   * A line that states facts itself, such as a row. Search would otherwise find all rows of a table by the words of one.
   *
   * @returns the index of its passage; null: there are too many
   */
  addLine(line: string): number | null {
    if (this.#lines.length >= MAX_EDGES) return null;
    return this.#passages.length + this.#lines.push(admitText(line, MAX_PASSAGE)) - 1;
  }

  /** @returns the index of the passage that holds the offset */
  passageAt(offset: number): number | null {
    let [low, high] = [0, this.#passages.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#passages[middle]!.start <= offset) low = middle;
      else high = middle - 1;
    }
    const passage = this.#passages[low];
    return passage !== undefined && passage.start <= offset && offset < passage.end ? low : null;
  }

  /** The first node of a key counts. @returns its key; null: there are too many */
  addNode(node: Omit<NodeToLearn, 'passage'> & { readonly passage?: number | null }): string | null {
    if (this.#nodes.has(node.key)) return node.key;
    const name = cut(node.name, MAX_NAME);
    if (name === '') return null;
    if (this.#nodes.size >= MAX_NODES) {
      this.#truncated = true;
      return null;
    }
    const passage = node.passage ?? (node.offset === null ? null : this.passageAt(node.offset));
    const summary = node.summary === null ? null : cut(node.summary, MAX_SUMMARY) || null;
    this.#nodes.set(node.key, { ...node, name, summary, passage });
    return node.key;
  }

  /** Edges between nodes that were not taken are left out. */
  addEdge(edge: {
    readonly name: string;
    readonly fact: string;
    readonly source: string | null;
    readonly target: string | null;
    readonly offset: number | null;
    readonly passage?: number | null;
    readonly isSingleValued?: boolean;
  }): void {
    const { source, target, offset, isSingleValued = false } = edge;
    if (source === null || target === null || source === target) return;
    const key = JSON.stringify([source, edge.name, target]);
    if (this.#edges.has(key)) return;
    if (this.#edges.size >= MAX_EDGES) {
      this.#truncated = true;
      return;
    }
    const passage = edge.passage ?? (offset === null ? null : this.passageAt(offset));
    const [name, fact] = [cut(edge.name, MAX_NAME), cut(edge.fact, MAX_FACT)];
    this.#edges.set(key, {
      name,
      fact,
      source,
      target,
      isSingleValued,
      passage,
      offset,
      validAt: null,
      invalidAt: null,
    });
  }

  markTruncated(): void {
    this.#truncated = true;
  }

  /** A property with several values in one document has several: they do not end each other. */
  #consistentEdges(): ExtractedEdge[] {
    const edges = [...this.#edges.values()];
    const property = ({ source, name }: ExtractedEdge): string => JSON.stringify([source, name]);
    const counts = new Map<string, number>();
    for (const edge of edges) counts.set(property(edge), (counts.get(property(edge)) ?? 0) + 1);
    return edges.map((edge) =>
      edge.isSingleValued && counts.get(property(edge))! > 1 ? { ...edge, isSingleValued: false } : edge,
    );
  }

  extraction(): Omit<Extraction, 'characters'> {
    return {
      passages: [...this.#passages.map(({ text }) => text), ...this.#lines],
      nodes: [...this.#nodes.values()],
      edges: this.#consistentEdges(),
      truncated: this.#truncated,
    };
  }
}

/** A line of at most `length` characters. */
export function cut(text: string, length: number): string {
  const line = admitText(text, length * 4)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length <= length ? line : `${admitText(line, length - 1).trimEnd()}…`;
}

/** Longer values are in summaries only: nothing else would have the same. */
const MAX_VALUE = 80;
const NO_VALUE = /^(?:[-–—.…?*]*|n\/?a|none|null|nil|tbd)$/i;

/** The fact that something has a value, which is a node of its own: values that are equal are the same node, which has no place. */
export function addValue(
  facts: FactCollector,
  about: { readonly source: string | null; readonly subject: string; readonly name: string },
  value: string,
  place: { readonly offset: number | null; readonly passage?: number | null },
): void {
  const text = value.trim().replace(/[\s,;]+$/, '');
  if (about.source === null || text.length > MAX_VALUE || NO_VALUE.test(text)) return;
  facts.addEdge({
    name: about.name,
    fact: `${cut(about.subject, 200)} — ${about.name}: ${text}`,
    source: about.source,
    target: facts.addNode({ key: `value:${keyOf(text)}`, name: text, summary: null, labels: ['Value'], offset: null }),
    ...place,
    isSingleValued: true,
  });
}

/** For keys that do not depend on case, width and white space. */
export function keyOf(name: string): string {
  return name.normalize('NFKC').replace(/\s+/gu, ' ').trim().toLowerCase();
}
