import { LRUCache } from 'lru-cache';

import { accept } from '#libs/kernel/decider.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import { type EntityId, newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import { isSettled } from './document.ts';
import { contentOf, type DocumentPut, type Documents } from './document.read.ts';
import type { DocumentFacts } from './extract/index.ts';
import { ingest, type IngestionParts } from './ingestion.ts';

export interface IngestedPutOptions {
  readonly signal: AbortSignal;
  readonly isNew: boolean;
  readonly facts?: DocumentFacts | null;
}

/** Documents that the reactor need not read, because they were ingested here. */
const MAX_REMEMBERED = 5_000;

/**
 * Stores documents and ingests them at once, without a reactor in between: for features that have many documents.
 *
 * Guarantees: those of `Documents.put`. When `put` resolves, nothing follows from the document any longer. A document
 * whose `put` was interrupted is ingested by the next `put` of the same content, or by the reactor after a minute.
 */
export class IngestedDocuments {
  readonly #documents: Documents;
  readonly #parts: IngestionParts;
  /** The revisions of the contents that were ingested here. */
  readonly #ingested = new LRUCache<EntityId, StreamRevision>({ max: MAX_REMEMBERED });

  constructor(documents: Documents, parts: IngestionParts) {
    this.#documents = documents;
    this.#parts = parts;
  }

  /** Whether this process has ingested the content of that revision; false if it does not remember. */
  has(id: EntityId, contentRevision: StreamRevision): boolean {
    return this.#ingested.get(id) === contentRevision;
  }

  /**
   * @param context its command id is not used: a document that exists is not created again
   * @param put with a `crawlId`, by which the reactor knows that the document is ingested here
   * @param options `isNew`: the document is expected not to exist; `facts`: of the content, if they are known
   * @throws Fault; TypeError for a document of another owner; ExtractionError if `signal` aborts
   */
  async put(context: CommandContext, put: DocumentPut, { isNew, ...options }: IngestedPutOptions): Promise<void> {
    const content = contentOf(put);
    const result = await this.#documents.put({ ...context, commandId: newId(), isNew }, put, content);
    if (!result.ok) throw new TypeError(`the document ${put.id} has another owner`);
    const { entity: document, isChanged } = result;
    if (isSettled(document)) return;
    const attempt = { context, ...options, isRepeated: !isChanged, isLast: true };
    const ingested = await ingest(document, content, this.#parts, attempt);
    await this.#documents.run({ ...context, commandId: newId() }, put.id, (state) => {
      const isCurrent = state?.contentRevision === document.contentRevision && !isSettled(state);
      return isCurrent ? accept(ingested) : accept();
    });
    this.#ingested.set(put.id, document.contentRevision);
  }
}
