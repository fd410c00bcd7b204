/* Port: the facts of graphs, indexed by the streams of the graphs; its questions and its answers. */
import type { Timestamp } from '#libs/kernel/clock.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

/**
 * Callers check that the graph belongs to the organization and is not deleted.
 *
 * Guarantees: every answer reflects all events that were in the stream before the call. The same question about the same
 * events has the same answer in every process; with `asOf`, also after later events. With vectors, these must be the same
 * too: they follow the events, and processes may have computed them differently far.
 *
 * All methods throw `Fault`: `store_unavailable`, `not_caught_up` when an index takes longer to build, `overloaded`.
 */
export interface GraphSearch {
  /** Null where `asOf` is before the first event of the graph. */
  search(graphId: EntityId, question: Question): Promise<SearchResult | null>;
  /** Null where `point` is before the first event of the graph. */
  past(graphId: EntityId, point: GraphPoint): Promise<PastGraph | null>;
  /** The counts as of a revision of the stream, which belong to its `ETag`. */
  counts(graphId: EntityId, revision: StreamRevision): Promise<GraphCounts>;
  /** The nodes and edges that the graph has, in the order of the ids. */
  facts(
    graphId: EntityId,
    ids: FactIds,
  ): Promise<{ readonly nodes: readonly FoundNode[]; readonly edges: readonly FoundEdge[] }>;
  /** Brings the index of this process up to date in the background, so that the next question waits less. */
  prepare(graphId: EntityId): void;
  /** Deletes what this process has of a deleted graph. Never rejects. */
  remove(graphId: EntityId): Promise<void>;
  close(): Promise<void>;
}

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
