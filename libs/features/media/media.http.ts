import { z } from 'zod';

import { refuse } from '#libs/kernel/decider.ts';
import { declareReads, EntityReplies } from '#libs/platform/entity/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import type { BlobStore } from '#libs/platform/blobs/index.ts';
import {
  type ChannelAccess,
  commandContext,
  type HttpApp,
  type MemberRoute,
  notFound,
  requireFetchable,
  routesTagged,
  downloadedFile,
} from '#libs/platform/http/index.ts';

import { IN_FILTERED_CHANNEL, IN_NAMED_CHANNEL, inChannelOfItem } from './media.members.ts';
import { createItem, descriptionOf, type OwnDestinations, requireDestinations } from './media.creation.ts';
import { sendFile, withAddresses } from './media.files.ts';
import { type MediaFacets, type MediaItems, mediaSchema } from './media.read.ts';
import { createMediaBody, fileParams, mediaDeletionSchema, mediaFilters, mediaParams } from './media.schemas.ts';
import { decideDelete, type MediaEvent, type MediaState } from './media.ts';

interface MediaRouteParts extends OwnDestinations {
  /** Decides whether a member that got an address still may use it. */
  readonly access: ChannelAccess;
  readonly media: MediaItems;
  readonly fetcher: Pick<Fetcher, 'check'>;
  readonly blobs: BlobStore;
}

type Replies = EntityReplies<MediaState, MediaEvent, MediaFacets>;

const { reads, writes } = routesTagged('media');
const params = mediaParams;
const response = { 200: mediaSchema };

export function mediaRoutes(app: HttpApp, parts: MediaRouteParts): void {
  const replies = new EntityReplies(parts.media, {}, withAddresses);
  const ofItem = inChannelOfItem(parts.media);
  declareReads(app, replies, {
    path: '/api/v1/media',
    tag: 'media',
    params,
    schema: mediaSchema,
    list: {
      operationId: 'listMedia',
      summary: 'List media items, newest first',
      filters: mediaFilters,
      members: IN_FILTERED_CHANNEL,
      facets: ({ twin, community, organization, ...query }) => ({
        twin: twin ?? query.twin_id,
        community: community ?? query.community_id,
        organization: organization ?? query.organization_id,
        resource_type: query.resource_type,
        format: query.format,
        knowledge_graph: query.knowledge_graph,
      }),
    },
    one: { operationId: 'getMedia', summary: 'Read a media item', members: ofItem },
  });
  createRoute(app, replies, parts);
  deleteRoute(app, replies, parts, ofItem);
  deletionRoute(app, parts);
  fileRoute(app, parts);
}

function createRoute(app: HttpApp, replies: Replies, parts: MediaRouteParts): void {
  app.post(
    '/api/v1/media',
    writes(
      {
        operationId: 'createMedia',
        summary: 'Create a media item: its file is fetched and processed',
        body: createMediaBody,
        response,
      },
      IN_NAMED_CHANNEL,
    ),
    async (request, reply) => {
      const { source_url: sourceUrl = null } = request.body;
      if (sourceUrl !== null) requireFetchable(parts.fetcher, sourceUrl, ['body', 'source_url']);
      await requireDestinations(request, parts, request.body);
      const created = await createItem(request, parts, { ...descriptionOf(request.body), sourceUrl, file: null });
      return replies.sendResult(request, reply, created);
    },
  );
}

function deleteRoute(app: HttpApp, replies: Replies, { media }: MediaRouteParts, members: MemberRoute): void {
  app.delete(
    '/api/v1/media/:id',
    writes(
      {
        operationId: 'deleteMedia',
        summary: 'Delete a media item: the addresses of its files answer 404 from then on',
        params,
        response: { 204: z.null().describe('The item is deleted') },
      },
      members,
    ),
    async (request, reply) => {
      const { isMember, principalId } = request.principal;
      const result = await media.update(commandContext(request), request.params.id, (item) =>
        isMember && item.creator.id !== principalId ? refuse({ reason: 'not_found' as const }) : decideDelete(item),
      );
      replies.accepted(request, reply, result);
      return reply.code(204).send();
    },
  );
}

function deletionRoute(app: HttpApp, { media }: MediaRouteParts): void {
  app.get(
    '/api/v1/media/deletions/:id',
    reads({
      operationId: 'getMediaDeletion',
      summary: 'Read who deleted a media item, when, and the SHA-256 of its file',
      params,
      response: { 200: mediaDeletionSchema },
    }),
    async (request) => {
      const item = await media.deleted(request.principal.organizationId, request.params.id);
      if (item === null) throw notFound();
      const { id, name, deletedBy, file, channel, interactionId } = item;
      return {
        id,
        name,
        deleted_at: item.deletedAt ?? item.modified,
        deleted_by: { type: deletedBy.type, id: deletedBy.id, key_id: deletedBy.keyId ?? null },
        sha256: file?.hash ?? null,
        bytes: file?.bytes ?? 0,
        channel,
        interaction_id: interactionId,
      };
    },
  );
}

function fileRoute(app: HttpApp, parts: MediaRouteParts): void {
  app.get(
    '/api/v1/media/files/:token',
    {
      config: { public: 'counted' },
      schema: {
        operationId: 'getMediaFile',
        summary: 'Read a file by its signed address, which expires; with ranges',
        tags: ['media'],
        security: [],
        params: fileParams,
        response: {
          200: { description: 'The file', content: { 'application/octet-stream': { schema: downloadedFile } } },
        },
      },
    },
    (request, reply) => sendFile(request, reply, request.params.token, parts),
  );
}
