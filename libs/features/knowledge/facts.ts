/* Facts on their way into a graph: their ids, and how they are divided into events. */
import type { Timestamp } from '#libs/kernel/clock.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';

import type { FactSource, FactsLearned, GraphEvent } from './graph.ts';

/** Where a fact is in its document: an index into the passages, and an offset in characters. */
interface Place {
  readonly passage: number | null;
  readonly offset: number | null;
}

export interface NodeToLearn extends Place {
  /**
   * Identifies the node in the graph: equal keys are one node. That of a thing that is known by its name alone is the
   * {@link normalized} name; those of things that mean nothing outside of their document, such as its sections, contain
   * its id.
   */
  readonly key: string;
  readonly name: string;
  readonly summary: string | null;
  readonly labels: readonly string[];
}

/** The key of a node, or its id. */
export type NodeReference = string | { readonly id: EntityId };

export interface EdgeToLearn extends Place {
  /** The relation, such as `works for`. */
  readonly name: string | null;
  /** A sentence that states the fact. */
  readonly fact: string;
  /** Nodes of these facts, or of facts that the graph has already. */
  readonly source: NodeReference;
  readonly target: NodeReference;
  /** When the fact was true, in UTC with milliseconds; null for unknown or open ends. */
  readonly validAt: Timestamp | null;
  readonly invalidAt: Timestamp | null;
  /** The source has one target by this relation: a later edge to another target ends this one. */
  readonly isSingleValued: boolean;
}

/** Facts of one source. Its size is not limited: `Knowledge.learn` divides it into events. */
export interface FactsToLearn {
  /** Null for facts that no document states. */
  readonly source: FactSource | null;
  /** Text of the document that the facts come from. */
  readonly passages: readonly string[];
  readonly nodes: readonly NodeToLearn[];
  readonly edges: readonly EdgeToLearn[];
  /** Name of the model that extracted the facts; null without a model. */
  readonly model: string | null;
}

/** Names and sentences that differ in case, width or white space only are the same. */
export function normalized(text: string): string {
  return text.normalize('NFKC').trim().replace(/\s+/gu, ' ').toLowerCase();
}

const NAMESPACE: EntityId = '2f4f2a36-54a3-5ac2-8d3f-7f1c1d0a9b6e';

/** The ids of the facts of a graph: the same facts have the same ids, in every process. */
export class FactIds {
  readonly #graphId: EntityId;
  readonly #byKey = new Map<string, EntityId>();

  constructor(graphId: EntityId) {
    this.#graphId = graphId;
  }

  node(node: NodeReference): EntityId {
    if (typeof node !== 'string') return node.id;
    const id = this.#byKey.get(node) ?? this.#derived('node', node);
    this.#byKey.set(node, id);
    return id;
  }

  /** The same statement about the same nodes, from the same time on, is the same edge. */
  edge({ name, fact, source, target, validAt }: EdgeToLearn): EntityId {
    const relation = name === null ? null : normalized(name);
    return this.#derived('edge', this.node(source), this.node(target), relation, normalized(fact), validAt);
  }

  #derived(...parts: readonly (string | null)[]): EntityId {
    return derivedId(NAMESPACE, JSON.stringify([this.#graphId, ...parts]));
  }
}

/** Data of one event. */
const MAX_EVENT_BYTES = 200 * 1024;
/** Data of the events of one append, which the event store limits to 1 MiB. */
const MAX_APPEND_BYTES = 700 * 1024;

/**
 * The events that learn the facts, in appends that the event store takes. A passage is stored in every event that has
 * facts of it.
 */
export function appendsOf(graphId: EntityId, facts: readonly FactsToLearn[]): readonly (readonly GraphEvent[])[] {
  const appends: GraphEvent[][] = [];
  let appendBytes = 0;
  for (const { event, bytes } of facts.flatMap((one) => partsOf(graphId, one))) {
    const open = appends.at(-1);
    if (open === undefined || appendBytes + bytes > MAX_APPEND_BYTES) {
      appends.push([event]);
      appendBytes = bytes;
    } else {
      open.push(event);
      appendBytes += bytes;
    }
  }
  return appends;
}

/** The part of a source's facts that one event holds. */
class Part {
  readonly #passages = new Map<string, number>();
  readonly #nodes: FactsLearned['nodes'] = [];
  readonly #edges: FactsLearned['edges'] = [];
  readonly #of: Pick<FactsLearned, 'source' | 'model'>;
  bytes: number;

  constructor(of: Pick<FactsLearned, 'source' | 'model'>) {
    this.#of = of;
    this.bytes = sizeOf(of) + ENVELOPE_BYTES;
  }

  /** Whether the fact was added; the first one always is. */
  add(fact: Fact, text: string | null): boolean {
    const known = text === null ? null : this.#passages.get(text);
    const bytes = sizeOf(fact.data) + (known === undefined ? sizeOf(text) : 0);
    const isEmpty = this.#nodes.length + this.#edges.length === 0;
    if (!isEmpty && this.bytes + bytes > MAX_EVENT_BYTES) return false;
    this.bytes += bytes;
    const passage = known === undefined ? this.#passages.size : known;
    if (known === undefined && text !== null) this.#passages.set(text, this.#passages.size);
    if (fact.kind === 'node') this.#nodes.push({ ...fact.data, passage });
    else this.#edges.push({ ...fact.data, passage });
    return true;
  }

  get event(): GraphEvent {
    const facts = { passages: [...this.#passages.keys()], nodes: this.#nodes, edges: this.#edges };
    return { type: 'FactsLearned.v1', data: { ...this.#of, ...facts } };
  }
}

type Fact =
  | { readonly kind: 'node'; readonly data: FactsLearned['nodes'][number] }
  | { readonly kind: 'edge'; readonly data: FactsLearned['edges'][number] };

/** Punctuation of an event without facts. */
const ENVELOPE_BYTES = 100;

function sizeOf(data: unknown): number {
  return Buffer.byteLength(JSON.stringify(data)) + 1;
}

function partsOf(graphId: EntityId, { source, passages, model, ...facts }: FactsToLearn): Part[] {
  const parts: Part[] = [];
  for (const fact of byPassage(graphId, facts)) {
    const { passage } = fact.data;
    const text = passage === null ? null : (passages[passage] ?? null);
    if (parts.at(-1)?.add(fact, text) === true) continue;
    const part = new Part({ source, model });
    part.add(fact, text);
    parts.push(part);
  }
  return parts;
}

/** The facts of a passage follow each other, so that few passages are stored twice. */
function byPassage(graphId: EntityId, { nodes, edges }: Pick<FactsToLearn, 'nodes' | 'edges'>): Fact[] {
  const ids = new FactIds(graphId);
  const learnt: Fact[] = nodes.map(({ key, labels, ...node }) => ({
    kind: 'node',
    data: { ...node, id: ids.node(key), labels: [...labels] },
  }));
  for (const edge of edges) {
    const ends = { source: ids.node(edge.source), target: ids.node(edge.target) };
    learnt.push({ kind: 'edge', data: { ...edge, ...ends, id: ids.edge(edge) } });
  }
  return learnt.toSorted((one, other) => orderOf(one) - orderOf(other));
}

/** Facts without a passage: nodes before all others, edges after them. */
function orderOf({ kind, data: { passage } }: Fact): number {
  return passage ?? (kind === 'node' ? -1 : Number.MAX_SAFE_INTEGER);
}
