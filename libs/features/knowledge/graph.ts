/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `graph-<id>`. A graph belongs to one organization, permanently. */
export const GRAPH = 'graph';

/** The content of a document that facts come from. Null: they were written through the API. */
const source = z
  .object({
    documentId: z.string(),
    /** Of the document's event that names the content. */
    revision: z.int(),
    name: z.string(),
    url: z.string().nullable(),
  })
  .nullable();

/** Where a fact is in its document: an index into `passages`, and an offset in characters. */
const place = { passage: z.int().nullable(), offset: z.int().nullable() };

export const learnedNode = z.object({
  id: z.string(),
  name: z.string(),
  summary: z.string().nullable(),
  labels: z.array(z.string()),
  ...place,
});

export const learnedEdge = z.object({
  id: z.string(),
  /** The relation, such as `works for`. */
  name: z.string().nullable(),
  /** A sentence that states the fact. */
  fact: z.string(),
  /** Ids of nodes. */
  source: z.string(),
  target: z.string(),
  /** When the fact was true, in UTC with milliseconds; null for unknown or open ends. */
  validAt: z.string().nullable(),
  invalidAt: z.string().nullable(),
  /** The source has one target by this relation: a later edge to another target ends this one. */
  isSingleValued: z.boolean(),
  ...place,
});

export const graphCodec = defineEvents({
  'GraphCreated.v1': z.object({ id: z.string(), name: z.string(), description: z.string().nullable() }),
  'GraphRenamed.v1': z.object({ name: z.string() }),
  'GraphDescribed.v1': z.object({ description: z.string().nullable() }),
  'GraphDeleted.v1': z.object({}),
  /** Asserts facts. One that the graph has already, by its id, is confirmed by another source. */
  'FactsLearned.v1': z.object({
    source,
    /** Text of the document that the facts come from. */
    passages: z.array(z.string()),
    nodes: z.array(learnedNode),
    edges: z.array(learnedEdge),
    /** Name of the model that extracted the facts; null without a model. */
    model: z.string().nullable(),
  }),
  /** Facts of content of the document before a revision are withdrawn, not erased; null: of all its content. */
  'FactsWithdrawn.v1': z.object({ documentId: z.string(), beforeRevision: z.int().nullable() }),
  /** An edge is no longer true from a time on. */
  'EdgeEnded.v1': z.object({ edgeId: z.string(), invalidAt: z.string() }),
});

export type GraphEvent = EventOf<typeof graphCodec>;
export type FactsLearned = Extract<GraphEvent, { type: 'FactsLearned.v1' }>['data'];
export type FactSource = NonNullable<FactsLearned['source']>;

/** A graph without its facts: the search index holds these, so this state is small. */
export type Graph = EntityState & {
  readonly name: string;
  readonly description: string | null;
  /** A deleted graph is answered as a missing one. */
  readonly deletedAt: Timestamp | null;
};

/** `null` until the graph is created. */
export type GraphState = Graph | null;

export const graphFold: Fold<GraphState, GraphEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'GraphCreated.v1') return { ...event.data, ...createdBy(event), deletedAt: null };
    if (state === null) return state;
    // Facts change the graph as well: its counts, and therefore its ETag.
    const changed = { ...state, ...changedBy(event) };
    if (event.type === 'GraphRenamed.v1' || event.type === 'GraphDescribed.v1') return { ...changed, ...event.data };
    if (event.type === 'GraphDeleted.v1') return { ...changed, deletedAt: changed.modified };
    return changed;
  },
};

/** Fields to change; absent ones stay as they are, `null` clears. */
export interface GraphChanges {
  readonly name?: string | undefined;
  readonly description?: string | null | undefined;
}

export function decideUpdate(graph: Graph, { name, description }: GraphChanges): Decision<GraphEvent, never> {
  const events: GraphEvent[] = [];
  if (name !== undefined && name !== graph.name) events.push({ type: 'GraphRenamed.v1', data: { name } });
  if (description !== undefined && description !== graph.description) {
    events.push({ type: 'GraphDescribed.v1', data: { description } });
  }
  return accept(...events);
}

export function decideDelete(): Decision<GraphEvent, never> {
  return accept({ type: 'GraphDeleted.v1', data: {} });
}

export function decideEndEdge(edgeId: string, invalidAt: Timestamp): Decision<GraphEvent, never> {
  return accept({ type: 'EdgeEnded.v1', data: { edgeId, invalidAt } });
}
