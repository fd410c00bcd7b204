import { readFile } from 'node:fs/promises';

import type { MediaFile } from '#libs/features/documents/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import type { Actor } from '#libs/kernel/event.ts';
import { type EntityId, newId } from '#libs/kernel/ids.ts';
import { type BlobStore, missingBlob } from '#libs/platform/blobs/index.ts';
import { Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';

import {
  isSettled,
  MEDIA,
  type Media,
  mediaCodec,
  type MediaEvent,
  mediaFold,
  type MediaState,
  statusLabel,
} from './media.ts';

export type MediaFacets = {
  readonly twin: string;
  readonly community: string | null;
  readonly organization: string;
  readonly resource_type: string | null;
  readonly format: string | null;
  readonly knowledge_graph: string | null;
};

/** As it is stored: an empty address stands for one that replies add, because it is signed and expires. */
export const mediaResource = (media: Media) => ({
  id: media.id,
  created: media.createdAt,
  modified: media.modified,
  name: media.name,
  url: media.preview === null ? null : '',
  source_url: media.sourceUrl,
  file_url: media.file === null ? null : '',
  description: media.description,
  status: statusLabel(media),
  format: media.type?.format ?? '',
  resource_type: media.type?.resourceType ?? '',
  mime_type: media.type?.mimeType ?? '',
  bytes: media.file?.bytes ?? 0,
  width: media.width,
  height: media.height,
  pages: media.pages,
  duration_ms: media.durationMs,
  document_id: media.documentId,
  interaction_id: media.interactionId,
  channel: media.channel,
  message: media.message,
  sha256: media.file?.hash ?? null,
});

export const mediaEntity = entity<MediaState, MediaEvent, MediaFacets>({
  category: MEDIA,
  version: 3,
  codec: mediaCodec,
  fold: mediaFold,
  resource: mediaResource,
  facets: (media) => ({
    twin: media.creator.id,
    community: media.channel,
    organization: media.organizationId,
    resource_type: media.type?.resourceType ?? null,
    format: media.type?.format ?? null,
    knowledge_graph: media.knowledgeGraph,
  }),
  isEnded: isSettled,
});

/** Of a read of the log, which is stored nowhere. */
const READER: Actor = { type: 'system', id: 'reader' };

export class MediaItems extends Entities<MediaState, MediaEvent, MediaFacets> {
  readonly #blobs: BlobStore;

  constructor(core: EntityCore & { readonly blobs: BlobStore }) {
    super(mediaEntity, core);
    this.#blobs = core.blobs;
  }

  /** A deleted item with the last that is known of it, from the log; null for one that is not deleted, and as {@link find}. */
  async deleted(organizationId: EntityId, id: EntityId): Promise<(Media & { readonly deletedBy: Actor }) | null> {
    const item = await this.current({ commandId: newId(), organizationId, actor: READER, at: systemClock.now() }, id);
    if (item?.organizationId !== organizationId || item.deletedBy === null) return null;
    return { ...item, deletedBy: item.deletedBy };
  }

  /** The file of an item, for documents. Null for a missing item, or one of another organization. */
  async file(organizationId: EntityId, id: EntityId): Promise<MediaFile | null> {
    const item = await this.find(organizationId, id);
    if (item === null) return null;
    const { name, file, type } = item;
    return {
      name,
      mimeType: file && (type?.mimeType ?? null),
      bytes: file?.bytes ?? 0,
      read: async () => {
        const content = file && (await this.#blobs.withFile(file, (path) => readFile(path)));
        if (content === null) throw missingBlob();
        return content;
      },
    };
  }
}
