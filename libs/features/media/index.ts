/** Media items: files that are fetched or uploaded, measured and previewed. One stream, `media-<id>`, for each. */
import type { UploadLimits } from '#libs/platform/config/index.ts';
import type { ChannelAccess, HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { FileInspector } from './file-inspector.ts';
import type { OwnDestinations } from './media.creation.ts';
import { type Destinations, mediaDelivery } from './media.delivery.ts';
import { mediaRoutes } from './media.http.ts';
import { mediaProcessing } from './media.reactor.ts';
import { mediaEntity, type MediaItems } from './media.read.ts';
import { MEDIA } from './media.ts';
import { uploadRoutes } from './upload.http.ts';
import { UploadQuota } from './upload-quota.ts';
import { Uploads } from './uploads.ts';

export { MediaItems } from './media.read.ts';
export { UPLOAD_VALID_MS } from './uploads.ts';

export const mediaModule = {
  name: 'media',
  projections: [mediaEntity.projection],
  blobReferences: [{ category: MEDIA, releasedBy: ['MediaDeleted.v1'] }],
} satisfies Module;

/** Declares the routes of items, and those of uploads. */
export function mediaItemRoutes(
  app: HttpApp,
  { fetcher, blobs, redis }: Core,
  parts: OwnDestinations & {
    readonly media: MediaItems;
    readonly access: ChannelAccess;
    readonly limits: UploadLimits;
  },
): void {
  mediaRoutes(app, { ...parts, fetcher, blobs });
  const { limits, ...others } = parts;
  uploadRoutes(app, { ...others, blobs, uploads: new Uploads(redis, blobs), quota: new UploadQuota(redis, limits) });
}

export function mediaReactors({ fetcher, blobs, temporaryDir, closeFirst }: Core, destinations: Destinations) {
  // Its process starts with the first file.
  const inspector = new FileInspector();
  closeFirst.push(() => inspector.close());
  return [
    mediaProcessing({ fetcher, blobs, inspector, temporaryDir }),
    mediaDelivery({ ...destinations, blobs, inspector, temporaryDir }),
  ];
}
