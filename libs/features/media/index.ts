/** Media items: files that are fetched or uploaded, measured and previewed. One stream, `media-<id>`, for each. */
import type { Channels } from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { Entities } from '#libs/platform/entity/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { FileInspector } from './file-inspector.ts';
import { type Destinations, mediaDelivery } from './media.delivery.ts';
import { fileOf } from './media.files.ts';
import { mediaRoutes } from './media.http.ts';
import { mediaProcessing } from './media.reactor.ts';
import { mediaEntity } from './media.read.ts';
import { MEDIA } from './media.ts';
import { uploadRoutes } from './upload.http.ts';
import { UploadQuota } from './upload-quota.ts';
import { Uploads } from './uploads.ts';

export { UPLOAD_VALID_MS } from './uploads.ts';

interface MediaDeps extends Destinations {
  readonly channels: Channels;
}

export const mediaModule = {
  name: 'media',
  projections: [mediaEntity.projection],
  blobReferences: [{ category: MEDIA, releasedBy: ['MediaDeleted.v1'] }],
  create(core: Core, { channels, ...destinations }: MediaDeps) {
    const { knowledge } = destinations;
    const media = new Entities(mediaEntity, core);
    // Its process starts with the first file.
    const inspector = new FileInspector();
    const { fetcher, blobs, redis, temporaryDir, closeFirst } = core;
    const uploads = new Uploads(redis, blobs);
    const quota = new UploadQuota(redis, core.uploads);
    closeFirst.push(() => inspector.close());
    return {
      media,
      file: (organizationId: EntityId, id: EntityId) => fileOf(media, blobs, organizationId, id),
      routes(app: HttpApp) {
        mediaRoutes(app, { media, knowledge, channels, fetcher, blobs });
        uploadRoutes(app, { media, knowledge, channels, blobs, uploads, quota });
      },
      reactors: [
        mediaProcessing({ fetcher, blobs, inspector, temporaryDir }),
        mediaDelivery({ ...destinations, blobs, inspector, temporaryDir }),
      ],
    };
  },
} satisfies Module;
