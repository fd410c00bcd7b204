import type { EntityId } from '#libs/kernel/ids.ts';
import type { Document, DocumentPage, EntityReader, ListPage } from '#libs/platform/readmodel/index.ts';

import { KEY } from './key.events.ts';
import { facetsOfFilter } from './keys.projection.ts';
import type { KeyFilter } from './keys.projection.ts';

/** Reads of keys for those who manage them; who a key belongs to, `KeyDirectory` says. Faults of `EntityReader`. */
export class KeyQueries {
  readonly #reader: EntityReader;

  constructor(reader: EntityReader) {
    this.#reader = reader;
  }

  /** The key as REST answers it, or null if there is none or it is another organization's. */
  key(organizationId: EntityId, id: EntityId): Promise<Document | null> {
    return this.#reader.document(KEY, organizationId, id);
  }

  /** Keys that match all of the filter, newest first. */
  list(organizationId: EntityId, filter: KeyFilter, page: ListPage): Promise<DocumentPage> {
    return this.#reader.page({ category: KEY, organizationId, facets: facetsOfFilter(filter) }, page);
  }
}
