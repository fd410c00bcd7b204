import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityCore, type EntityResult, type NotFound } from '#libs/platform/entity/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';

import { type DocumentContent, DocumentContents } from './document.content.ts';
import {
  decideDelete,
  decidePut,
  DOCUMENT,
  type Document,
  documentCodec,
  type DocumentCreated,
  type DocumentEvent,
  documentFold,
  type DocumentRejection,
  type DocumentState,
  isSettled,
  LEFT_OUT,
  statusLabel,
} from './document.ts';
import type { ContentType } from './document.schemas.ts';

export type DocumentFacets = {
  readonly knowledge_graph: string | null;
  readonly crawl: string | null;
  readonly status: readonly string[];
};

const documentFields = shownFields<Document>()({
  id: z.string(),
  created: [shownTime(), ({ createdAt }) => createdAt],
  modified: shownTime(),
  status: [z.string().nullable().describe('`Queued`, `Processing`, `Ready`, or `Failed: <why>`'), statusLabel],
  name: z.string().default(''),
  external_id: z.string().nullable(),
  data: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('The object that the document was created with as `data`'),
  characters: [
    z.int().nullable().default(null).describe('Characters of text that were found; null until it is `Ready`'),
    ({ ingested }) => ingested?.characters ?? null,
  ],
  left_out: [
    z
      .array(z.object({ what: z.enum(LEFT_OUT), count: z.int().nullable().describe('Of pages') }))
      .default([])
      .describe(
        'What the knowledge graph did not learn: `no_text`, `pages_without_text` (pages of a PDF that hold only images), `pages_over_limit`, `text_over_limit`, `facts_over_limit`',
      ),
    ({ ingested }) => ingested?.leftOut ?? [],
  ],
});
export const documentSchema = z.object(documentFields.shape).meta({ id: 'Document' });

export const documentEntity = entity<DocumentState, DocumentEvent, DocumentFacets>({
  category: DOCUMENT,
  version: 3,
  codec: documentCodec,
  fold: documentFold,
  resource: documentFields.resource,
  facets: (document) => ({
    knowledge_graph: document.knowledgeGraph,
    crawl: document.crawlId,
    status: statusFacets(document),
  }),
  // `document.queued`, `.processing`, `.ready`, `.failed`; `.deleted`, and `.withdrawn` once its facts are.
  isEnded: isSettled,
  frame: ({ after }) => `document.${after?.status}`,
});

/** The whole label, and for failures `Failed` as well. */
function statusFacets(document: Document): string[] {
  const facets = [statusLabel(document)];
  if (document.status === 'failed') facets.push('Failed');
  return facets;
}

/** A document as its source has it. */
export type DocumentPut = {
  /** A UUID that is derived from what identifies the document at its source, so that it is found again. */
  readonly id: EntityId;
  /** Null: the document is kept, and no facts are extracted. */
  readonly knowledgeGraph: EntityId | null;
  readonly name: string;
  readonly contentType: ContentType | `${ContentType};charset=${string}`;
  /** Structured data that came with the text: the result of `readPage`. */
  readonly structured?: object | null;
  readonly url?: string | null;
  readonly crawlId?: EntityId | null;
  readonly externalId?: string | null;
  /** A JSON object that is small enough for replies. */
  readonly data?: DocumentCreated['data'];
} & ({ readonly text: string } | { readonly bytes: Uint8Array });

export function contentOf(put: DocumentPut): DocumentContent {
  return { body: 'text' in put ? Buffer.from(put.text) : put.bytes, structured: put.structured ?? null };
}

export class Documents extends Entities<DocumentState, DocumentEvent, DocumentFacets> {
  readonly contents: DocumentContents;

  constructor(core: EntityCore) {
    super(documentEntity, core);
    this.contents = new DocumentContents(core);
  }

  /**
   * Creates the document, changes it, or does nothing if it is the same as before. The content is written first: a
   * document that can be read has its content. Facts follow asynchronously: see `status`.
   *
   * @param content {@link contentOf} `put`
   * @throws `Fault`: `store_unavailable`, `outcome_unknown` (the same call may be repeated), `conflict`
   */
  async put(
    context: CommandContext,
    put: DocumentPut,
    content: DocumentContent = contentOf(put),
  ): Promise<EntityResult<Document, DocumentRejection>> {
    const { id, knowledgeGraph, name, contentType } = put;
    const hash = await this.contents.write(context, id, content);
    const { url = null, crawlId = null, externalId = null, data = null } = put;
    const bytes = content.body.length;
    const created = { id, knowledgeGraph, name, externalId, crawlId, contentType, hash, bytes, url, data };
    return this.run(context, id, (state) => decidePut(state, created, context.organizationId));
  }

  /** Deletes the document; its facts are withdrawn asynchronously. */
  remove(context: CommandContext, id: EntityId): Promise<EntityResult<Document, NotFound>> {
    return this.update(context, id, decideDelete);
  }
}
