/* Questions about the facts of graphs, and their answers. */
import type { Timestamp } from '#libs/kernel/clock.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';

/** A document that a fact comes from. */
export interface FoundSource {
  readonly document_id: string;
  readonly name: string;
  readonly url: string | null;
  /** Text of the document around the fact; null where the fact has no place in it. */
  readonly passage: string | null;
}

/** A node as search answers it (section 2.9 of the contract, and its sources). */
export interface FoundNode {
  readonly uuid: string;
  readonly name: string;
  readonly summary: string | null;
  readonly labels: readonly string[];
  /** When the graph first learnt it. */
  readonly created_at: string;
  /** Empty for facts that were written through the API. */
  readonly sources: readonly FoundSource[];
}

export interface FoundEdge {
  readonly uuid: string;
  readonly fact: string;
  readonly source_node_uuid: string;
  readonly target_node_uuid: string;
  readonly name: string | null;
  readonly created_at: string;
  readonly valid_at: string | null;
  readonly invalid_at: string | null;
  readonly sources: readonly FoundSource[];
}

/** Results of a kind in one answer. */
export const MAX_LIMIT = 50;

export interface Question {
  /** `*` or empty: the newest facts. */
  readonly query: string;
  /** Of nodes and edges separately. */
  readonly limit: number;
  /** Edges that were true at this time; default: now. */
  readonly validAt?: string | undefined;
  /** The point at which the graph is searched; default: now. */
  readonly asOf?: GraphPoint | undefined;
}

/** A sequence of the graph's stream (0 is before anything; one after its end is its end), or an RFC 3339 time. */
export type GraphPoint = { readonly sequence: number } | { readonly at: string };

/** A graph as it was after an event. */
export interface PastGraph {
  readonly revision: StreamRevision;
  readonly name: string;
  readonly description: string | null;
  /** Time of the event. */
  readonly modified: Timestamp;
}

/** The order of the results. */
export const RANKINGS = ['newest', 'words', 'words_and_vectors'] as const;

export interface SearchResult {
  /** `words` also where the vectors are not at hand at present. */
  readonly ranking: (typeof RANKINGS)[number];
  readonly total_nodes: number;
  readonly total_edges: number;
  readonly nodes: readonly FoundNode[];
  readonly edges: readonly FoundEdge[];
}

/** Facts that are learnt and not withdrawn, whether or not they are true now. */
export interface GraphCounts {
  readonly nodes: number;
  readonly edges: number;
  /** Documents that at least one of the facts comes from. */
  readonly documents: number;
}

/** A point with its time in Unix milliseconds. */
export type PlannedPoint = { readonly sequence: number } | { readonly atMs: number };

/** A question with its times in Unix milliseconds. */
export interface PlannedQuestion {
  readonly query: string;
  readonly limit: number;
  readonly validAtMs: number | null;
  readonly asOf: PlannedPoint | null;
  readonly nowMs: number;
  /** Of the query, with length 1; null: words alone are compared. */
  readonly vector?: Float32Array | null;
}

export interface FactIds {
  readonly nodes: readonly string[];
  readonly edges: readonly string[];
}
