/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, type Decision, type Fold, refuse } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `document-<id>`. The content is in streams of its own: see `document.content.ts`. */
export const DOCUMENT = 'document';

/** The text of a document and its structure. Its facts are extracted from all of this. */
const content = z.object({
  name: z.string(),
  contentType: z.string(),
  /** SHA-256 of the content, in hex; names the stream that holds it. */
  hash: z.string(),
  /** Size of the text or of the file. */
  bytes: z.int(),
  url: z.string().nullable(),
  /** A JSON object that is small enough for replies; null for all other documents. */
  data: z.record(z.string(), z.json()).nullable(),
});

/** Why a part of the content, or all of it, gave no facts. */
export const LEFT_OUT = [
  'no_text',
  'pages_without_text',
  'pages_over_limit',
  'text_over_limit',
  'facts_over_limit',
] as const;

/** `count`: of pages. */
const leftOut = z.object({ what: z.enum(LEFT_OUT), count: z.int().nullable() });
export type LeftOut = z.infer<typeof leftOut>;

export const documentCodec = defineEvents({
  /** Also for a document that was deleted: it then exists again, with new content. */
  'DocumentCreated.v1': content.extend({
    id: z.string(),
    /** Null: the document is kept, and no facts are extracted. */
    knowledgeGraph: z.string().nullable(),
    externalId: z.string().nullable(),
    crawlId: z.string().nullable(),
  }),
  'DocumentChanged.v1': content,
  'DocumentIngestionStarted.v1': z.object({}),
  'DocumentIngested.v1': z.object({
    nodes: z.int(),
    edges: z.int(),
    passages: z.int(),
    /** The content has more text or facts than are read from one document. */
    isTruncated: z.boolean(),
    /** Of the text that facts were looked for in. Older events lack it and `leftOut`. */
    characters: z.int().optional(),
    leftOut: z.array(leftOut).optional(),
  }),
  'DocumentIngestionFailed.v1': z.object({ reason: z.string() }),
  'DocumentDeleted.v1': z.object({}),
  /** Follows `DocumentDeleted`: the graph shows none of its facts any longer. */
  'DocumentFactsWithdrawn.v1': z.object({}),
});

export type DocumentEvent = EventOf<typeof documentCodec>;
export type DocumentCreated = Extract<DocumentEvent, { type: 'DocumentCreated.v1' }>['data'];
export type DocumentIngested = Extract<DocumentEvent, { type: 'DocumentIngested.v1' }>['data'];

/** `withdrawn`: deleted, and its facts are withdrawn as well. */
export type IngestionStatus = 'queued' | 'processing' | 'ready' | 'failed' | 'deleted' | 'withdrawn';

export type Document = DocumentCreated &
  EntityState & {
    readonly status: IngestionStatus;
    /** Why the ingestion failed. */
    readonly failure: string | null;
    /** A deleted document is answered as a missing one. */
    readonly deletedAt: Timestamp | null;
    /** The result of the ingestion; null until the present content is ingested. */
    readonly ingested: DocumentIngested | null;
    /** Revision of the event that gave the document its present content, or deleted it: the `revision` of its facts. */
    readonly contentRevision: StreamRevision;
    /** Revision of the event by which a worker started on that content; null until then. */
    readonly startRevision: StreamRevision | null;
  };

/** `null` until the document is created. */
export type DocumentState = Document | null;

export const documentFold: Fold<DocumentState, DocumentEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'DocumentCreated.v1') {
      const { id, organizationId, createdAt } = state ?? { id: event.data.id, ...createdBy(event) };
      const { knowledgeGraph } = event.data;
      return { ...event.data, id, organizationId, createdAt, ...changedBy(event), ...queued(event, knowledgeGraph) };
    }
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    switch (event.type) {
      case 'DocumentChanged.v1':
        return { ...changed, ...event.data, ...queued(event, state.knowledgeGraph) };
      case 'DocumentIngestionStarted.v1':
        return { ...changed, status: 'processing', startRevision: event.revision };
      case 'DocumentIngested.v1':
        return { ...changed, status: 'ready', ingested: event.data };
      case 'DocumentIngestionFailed.v1':
        return { ...changed, status: 'failed', failure: event.data.reason };
      case 'DocumentDeleted.v1': {
        const isWithdrawn = state.knowledgeGraph === null;
        return {
          ...changed,
          ...queued(event, null),
          data: null,
          deletedAt: changed.modified,
          status: isWithdrawn ? 'withdrawn' : 'deleted',
        };
      }
      case 'DocumentFactsWithdrawn.v1':
        return { ...changed, status: 'withdrawn' };
    }
  },
};

/** A document without a graph has nothing to wait for. */
function queued({ revision }: Parameters<typeof changedBy>[0], knowledgeGraph: EntityId | null) {
  const status: IngestionStatus = knowledgeGraph === null ? 'ready' : 'queued';
  return { status, failure: null, deletedAt: null, ingested: null, contentRevision: revision, startRevision: null };
}

/** @param reason a sentence for people, without a full stop */
export function failed(reason: string): DocumentEvent {
  return { type: 'DocumentIngestionFailed.v1', data: { reason } };
}

/** Whether nothing follows from the present content any longer. */
export function isSettled({ status }: Pick<Document, 'status'>): boolean {
  return status === 'ready' || status === 'failed' || status === 'withdrawn';
}

/** The status as the API shows it. */
export function statusLabel({ status, failure }: Pick<Document, 'status' | 'failure'>): string {
  switch (status) {
    case 'queued':
      return 'Queued';
    case 'processing':
      return 'Processing';
    case 'ready':
      return 'Ready';
    case 'failed':
      return `Failed: ${failure}`;
    case 'deleted':
    case 'withdrawn':
      return 'Deleted';
  }
}

/** Namespace of the ids of documents with an external id. Part of the storage format: never change it. */
const EXTERNAL_IDS = '0b8f1d0e-0d3c-4b35-9a3f-2f6f7c8f5a41';

/** The document that an external id names in a graph: found without a read, so it is created once. */
export function documentIdOf(organizationId: EntityId, knowledgeGraph: EntityId, externalId: string): EntityId {
  return derivedId(EXTERNAL_IDS, JSON.stringify([organizationId, knowledgeGraph, externalId]));
}

/** The document exists in another graph or crawl, or belongs to another organization. */
export type DocumentRejection = { readonly reason: 'other_document' };

/** Creates the document, changes it, or does nothing if it is the same. A document that failed is ingested again. */
export function decidePut(
  state: DocumentState,
  put: DocumentCreated,
  organizationId: EntityId,
): Decision<DocumentEvent, DocumentRejection> {
  if (state !== null && isOther(state, put, organizationId)) return refuse({ reason: 'other_document' });
  if (state === null || state.deletedAt !== null) return accept({ type: 'DocumentCreated.v1', data: put });
  const { id: _id, knowledgeGraph: _graph, externalId: _externalId, crawlId: _crawlId, ...given } = put;
  const isSame = SAME.every((field) => given[field] === state[field]);
  if (isSame && state.status !== 'failed') return accept();
  return accept({ type: 'DocumentChanged.v1', data: given });
}

/** The hash covers the data. */
const SAME = ['hash', 'contentType', 'name', 'url'] as const;

function isOther(state: Document, put: DocumentCreated, organizationId: EntityId): boolean {
  return state.organizationId !== organizationId || state.knowledgeGraph !== put.knowledgeGraph;
}

export function decideDelete(document: Document): Decision<DocumentEvent, never> {
  return document.deletedAt === null ? accept({ type: 'DocumentDeleted.v1', data: {} }) : accept();
}
