/** Tasks of the thread of indexes. */
import type { FactIds, PlannedPoint, PlannedQuestion } from './graph-questions.ts';
import type { IndexedEvent } from './event-writer.ts';

export type Task = { readonly graphId: string } & (
  | { readonly kind: 'progress' }
  /** Deletes the file: it is built again. */
  | { readonly kind: 'delete' }
  /** Deletes all files of the graph. */
  | { readonly kind: 'remove' }
  | { readonly kind: 'write'; readonly events: readonly IndexedEvent[] }
  | { readonly kind: 'search'; readonly question: PlannedQuestion }
  | { readonly kind: 'past'; readonly point: PlannedPoint }
  | { readonly kind: 'counts'; readonly revision: number }
  | { readonly kind: 'facts'; readonly ids: FactIds }
  | { readonly kind: 'missing-vectors'; readonly limit: number }
  | { readonly kind: 'add-vectors'; readonly vectors: readonly (readonly [key: string, Float32Array | null])[] }
);

/** The last event that an index has; revision -1 for none. */
export interface Progress {
  readonly revision: number;
  readonly event: string;
}
