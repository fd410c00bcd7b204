import { z } from 'zod';

import { EntityReplies } from '#libs/platform/entity/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import type { BlobStore } from '#libs/platform/blobs/index.ts';
import {
  commandContext,
  etagOf,
  type HttpApp,
  notFound,
  openPage,
  requireFetchable,
  routesTagged,
  sendJson,
  sendPage,
} from '#libs/platform/http/index.ts';

import { createItem, descriptionOf, type OwnDestinations, requireDestinations, sendItem } from './media.creation.ts';
import { sendFile, withAddresses } from './media.files.ts';
import { type MediaItems, mediaResource } from './media.read.ts';
import {
  createMediaBody,
  fileParams,
  listMediaQuery,
  mediaPageSchema,
  mediaParams,
  mediaSchema,
} from './media.schemas.ts';
import { decideDelete } from './media.ts';

export interface MediaRouteParts extends OwnDestinations {
  readonly media: MediaItems;
  readonly fetcher: Pick<Fetcher, 'check'>;
  readonly blobs: BlobStore;
}

const { reads, writes } = routesTagged('media');
const params = mediaParams;
const response = { 200: mediaSchema };

export function mediaRoutes(app: HttpApp, parts: MediaRouteParts): void {
  readRoutes(app, parts);
  createRoute(app, parts);
  deleteRoute(app, parts);
  fileRoute(app, parts);
}

function readRoutes(app: HttpApp, { media }: MediaRouteParts): void {
  app.get(
    '/api/v1/media',
    reads({
      operationId: 'listMedia',
      summary: 'List media items, newest first',
      querystring: listMediaQuery,
      response: { 200: mediaPageSchema },
    }),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const filter = filterOf(request.query);
      const page = openPage(request, request.query, { ...filter, organizationId });
      const found = await media.states(organizationId, filter, page);
      const items = found.states.map((item) => withAddresses(request, mediaResource(item)));
      return sendPage(
        reply,
        items.map((item) => Buffer.from(JSON.stringify(item))),
        page.meta(found),
      );
    },
  );

  app.get(
    '/api/v1/media/:id',
    reads({ operationId: 'getMedia', summary: 'Read a media item', params, response }),
    async (request, reply) => {
      const found = await media.find(request.principal.organizationId, request.params.id);
      if (found === null) throw notFound();
      // Never 304: the addresses in an earlier answer may have expired.
      void reply.header('etag', etagOf(found.changedRevision));
      return sendJson(reply, JSON.stringify(withAddresses(request, mediaResource(found))));
    },
  );
}

function filterOf({ twin, community, organization, ...query }: z.output<typeof listMediaQuery>) {
  return {
    twin: twin ?? query.twin_id,
    community: community ?? query.community_id,
    organization: organization ?? query.organization_id,
    resource_type: query.resource_type,
    format: query.format,
    knowledge_graph: query.knowledge_graph,
  };
}

function createRoute(app: HttpApp, parts: MediaRouteParts): void {
  app.post(
    '/api/v1/media',
    writes({
      operationId: 'createMedia',
      summary: 'Create a media item: its file is fetched and processed',
      body: createMediaBody,
      response,
    }),
    async (request, reply) => {
      const { source_url: sourceUrl = null } = request.body;
      if (sourceUrl !== null) requireFetchable(parts.fetcher, sourceUrl, ['body', 'source_url']);
      await requireDestinations(request, parts, request.body);
      const created = await createItem(request, parts, { ...descriptionOf(request.body), sourceUrl, file: null });
      return sendItem(request, reply, parts, created);
    },
  );
}

function deleteRoute(app: HttpApp, { media }: MediaRouteParts): void {
  const replies = new EntityReplies(media, {});
  app.delete(
    '/api/v1/media/:id',
    writes({
      operationId: 'deleteMedia',
      summary: 'Delete a media item: the addresses of its files answer 404 from then on',
      params,
      response: { 204: z.null().describe('The item is deleted') },
    }),
    async (request, reply) => {
      replies.accepted(request, reply, await media.update(commandContext(request), request.params.id, decideDelete));
      return reply.code(204).send();
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
          200: { description: 'The file', content: { 'application/octet-stream': { schema: z.unknown() } } },
        },
      },
    },
    (request, reply) => sendFile(request, reply, request.params.token, parts),
  );
}
