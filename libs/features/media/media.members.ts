/** The files that members reach: those of the channels in which they take part. */
import type { MemberRoute } from '#libs/platform/http/index.ts';

import type { MediaItems } from './media.read.ts';
import type { Uploads } from './uploads.ts';

interface Named {
  readonly channel?: string | null | undefined;
  readonly community?: string | undefined;
  readonly community_id?: string | undefined;
}
type WithId = { readonly id: string };

/** A member lists the files of one channel, which it names. */
export const IN_FILTERED_CHANNEL: MemberRoute = {
  channelOf: ({ query }) => (query as Named).community ?? (query as Named).community_id ?? null,
};

/** A member creates items in a channel, which the body or, of an upload, the query names. */
export const IN_NAMED_CHANNEL: MemberRoute = {
  channelOf: ({ body }) => (body as Named).channel ?? null,
  scope: 'upload',
};
export const UPLOADED_TO_CHANNEL: MemberRoute = {
  channelOf: ({ query }) => (query as Named).channel ?? null,
  scope: 'upload',
};

/** The channel of an item never changes. */
export const inChannelOfItem = (media: Pick<MediaItems, 'find'>): MemberRoute => ({
  channelOf: async ({ principal, params }) =>
    (await media.find(principal.organizationId, (params as WithId).id))?.channel ?? null,
});

/** A member continues uploads of its own. */
export const ofOwnUpload = (uploads: Pick<Uploads, 'find'>): MemberRoute => ({
  channelOf: async ({ principal, params }) => {
    const upload = await uploads.find(principal.organizationId, (params as WithId).id);
    return upload?.ownerId === principal.principalId ? upload.described.channel : null;
  },
  scope: 'upload',
});
