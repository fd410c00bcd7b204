/** Documents that knowledge graphs learn from. One stream, `document-<id>`, for each, and one for each content. */
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { documentIngestion, type ReactorParts, graphRemoval } from './document.reactor.ts';
import { documentEntity, type Documents } from './document.read.ts';
import { ExtractionPool } from './extract/index.ts';

export { MAX_DOCUMENT_BYTES } from './document.content.ts';
export { documentRoutes } from './document.http.ts';
export type { MediaFile } from './document.inputs.ts';
export { type DocumentPut, Documents } from './document.read.ts';
export { IngestedDocuments } from './ingestion.ts';
export type { ContentType } from './document.schemas.ts';
export { documentIdOf } from './document.ts';
export * from './extract/index.ts';

export const documentsModule = { name: 'documents', projections: [documentEntity.projection] } satisfies Module;

/** The threads of this process that read documents, which start with the first task. */
export function openExtractionPool({ closeFirst }: Core): ExtractionPool {
  const pool = new ExtractionPool();
  closeFirst.push(() => pool.close());
  return pool;
}

export function documentReactors(parts: Omit<ReactorParts, 'contents'> & { readonly documents: Documents }) {
  const { documents } = parts;
  return [documentIngestion({ ...parts, contents: documents.contents }), graphRemoval(documents)];
}
