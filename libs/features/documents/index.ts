/** Documents that knowledge graphs learn from. One stream, `document-<id>`, for each, and one for each content. */
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { documentRoutes } from './document.http.ts';
import type { MediaFiles } from './document.inputs.ts';
import { documentIngestion } from './document.reactor.ts';
import { documentEntity, Documents } from './document.read.ts';
import { ExtractionPool } from './extract/index.ts';
import { IngestedDocuments } from './ingested-documents.ts';
import { graphRemoval } from './graph-removal.ts';

export { MAX_DOCUMENT_BYTES } from './document.content.ts';
export type { MediaFile, MediaFiles } from './document.inputs.ts';
export type { DocumentPut, Documents } from './document.read.ts';
export type { IngestedDocuments } from './ingested-documents.ts';
export type { ContentType } from './document.schemas.ts';
export { documentIdOf } from './document.ts';
export type { Document, DocumentRejection } from './document.ts';
export * from './extract/index.ts';

export const documentsModule = {
  name: 'documents',
  projections: [documentEntity.projection],
  create(core: Core, { knowledge, media }: { readonly knowledge: Knowledge; readonly media: MediaFiles }) {
    const documents = new Documents(core);
    // Its threads start with the first task.
    const extraction = new ExtractionPool();
    core.closeFirst.push(() => extraction.close());
    const { contents } = documents;
    const parts = { knowledge, pool: extraction };
    const ingestedDocuments = new IngestedDocuments(documents, parts);
    return {
      documents,
      ingestedDocuments,
      extraction,
      routes: (app: HttpApp) => documentRoutes(app, { documents, knowledge, media }),
      reactors: [documentIngestion({ contents, ingestedDocuments, ...parts }), graphRemoval(documents)],
    };
  },
} satisfies Module;
