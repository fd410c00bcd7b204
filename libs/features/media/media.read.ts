import { readFile } from 'node:fs/promises';

import { z } from 'zod';

import type { MediaFile } from '#libs/features/documents/index.ts';
import type { Actor } from '#libs/kernel/event.ts';
import { shownFields } from '#libs/kernel/fields.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { type BlobStore, missingBlob } from '#libs/platform/blobs/index.ts';
import { Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';

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
const mediaFields = shownFields<Media>()({
  id: z.string(),
  created: [shownTime(), ({ createdAt }) => createdAt],
  modified: shownTime(),
  name: z.string().nullable(),
  url: [
    z
      .string()
      .nullable()
      .describe('Address of the preview: an image, or the start of a text; null without one. It expires'),
    ({ preview }) => (preview === null ? null : ''),
  ],
  source_url: z.string().nullable().describe('The URL that the item was created with'),
  file_url: [
    z.string().nullable().describe('Address of the stored file; null without one. It expires'),
    ({ file }) => (file === null ? null : ''),
  ],
  description: z.string().nullable(),
  status: [z.string().nullable().describe('`Queued`, `Processing`, `Ready`, or `Failed: <why>`'), statusLabel],
  format: [
    z.string().default('').describe('Usual extension of such files; empty until it is known'),
    ({ type }) => type?.format ?? '',
  ],
  resource_type: [
    z
      .string()
      .default('')
      .describe('`image`, `video`, `audio`, `document`, `text`, `archive` or `other`; empty until it is known'),
    ({ type }) => type?.resourceType ?? '',
  ],
  mime_type: [
    z.string().describe('Found out from the content; empty until it is known'),
    ({ type }) => type?.mimeType ?? '',
  ],
  bytes: [z.int().describe('Size of the stored file; 0 without one'), ({ file }) => file?.bytes ?? 0],
  width: z
    .int()
    .default(0)
    .describe('As it is shown: of an image or a video in pixels, of a PDF in points; 0 if not measured'),
  height: z.int().default(0),
  pages: z.int().nullable().describe('Of a PDF'),
  duration_ms: z.int().nullable().describe('Of audio and video'),
  document_id: z.string().nullable().describe('The document that the knowledge graph learns from'),
  interaction_id: z.string().nullable().describe('The interaction that shows the file in the channel'),
  channel: z.string().nullable().describe('The channel that the item was created for'),
  message: z.string().nullable().describe('The message that the item was created for'),
  sha256: [
    z.string().nullable().describe('Of the stored file, in hex; null without one'),
    ({ file }) => file?.hash ?? null,
  ],
});
export const mediaSchema = z.object(mediaFields.shape).meta({ id: 'Media' });

export const mediaEntity = entity<MediaState, MediaEvent, MediaFacets>({
  category: MEDIA,
  version: 3,
  codec: mediaCodec,
  fold: mediaFold,
  resource: mediaFields.resource,
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

export class MediaItems extends Entities<MediaState, MediaEvent, MediaFacets> {
  readonly #blobs: BlobStore;

  constructor(core: EntityCore & { readonly blobs: BlobStore }) {
    super(mediaEntity, core);
    this.#blobs = core.blobs;
  }

  /** A deleted item with the last that is known of it, from the log; null for one that is not deleted, and as {@link find}. */
  async deleted(organizationId: EntityId, id: EntityId): Promise<(Media & { readonly deletedBy: Actor }) | null> {
    const item = await this.latest(organizationId, id);
    return item === null || item.deletedBy === null ? null : { ...item, deletedBy: item.deletedBy };
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
