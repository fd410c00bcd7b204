import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { type Knowledge, requireGraph } from '#libs/features/knowledge/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { EntityReplies, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  eventStreamResponse,
  type HttpApp,
  invalid,
  notFound,
  refuseCompression,
  routesTagged,
} from '#libs/platform/http/index.ts';

import { MAX_DOCUMENT_BYTES } from './document.content.ts';
import { contentOf, contentTypeOf, type GivenContent, MAX_JSON_BYTES, type MediaFiles } from './document.inputs.ts';
import type { Documents } from './document.read.ts';
import {
  CONTENT_TYPES,
  createDocumentBody,
  documentEventsQuery,
  documentPageSchema,
  documentParams,
  documentSchema,
  extensionOf,
  listDocumentsQuery,
  uploadBody,
  uploadQuery,
} from './document.schemas.ts';
import { type Document, documentIdOf, type DocumentRejection } from './document.ts';

export interface DocumentRouteParts {
  readonly documents: Documents;
  readonly knowledge: Pick<Knowledge, 'graph'>;
  readonly media: MediaFiles;
}

const { reads, writes } = routesTagged('documents');
const params = documentParams;
const response = { 200: documentSchema };
const errors: RejectionErrors<DocumentRejection> = { other_document: notFound };

export function documentRoutes(app: HttpApp, parts: DocumentRouteParts): void {
  readRoutes(app, parts);
  contentRoute(app, parts);
  createRoute(app, parts);
  // Files have parsers of their own, which must not apply to other routes.
  void app.register((files: HttpApp, _options, done) => {
    files.removeContentTypeParser('application/json');
    files.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, parsed) => {
      refuseCompression(request.headers);
      parsed(null, body);
    });
    uploadRoute(files, parts);
    done();
  });
  deleteRoute(app, parts);
}

function readRoutes(app: HttpApp, { documents, knowledge }: DocumentRouteParts): void {
  const replies = new EntityReplies(documents, errors);

  app.get(
    '/api/v1/documents',
    reads({
      operationId: 'listDocuments',
      summary: 'List documents, newest first',
      querystring: listDocumentsQuery,
      response: { 200: documentPageSchema },
    }),
    (request, reply) => {
      const { knowledge_graph, crawl, status } = request.query;
      const facets = { knowledge_graph, crawl, status };
      return replies.sendPage(request, reply, request.principal.organizationId, facets);
    },
  );

  app.get(
    '/api/v1/documents/:id',
    reads({ operationId: 'getDocument', summary: 'Read a document', params, response }),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { id } = request.params;
      await requireReadable({ documents, knowledge }, organizationId, id);
      return replies.sendOne(request, reply, organizationId, id);
    },
  );

  app.get(
    '/api/v1/documents/:id/events',
    reads({
      operationId: 'streamDocumentEvents',
      summary: 'Follow the progress of a document',
      description:
        'Server-sent events: `document.queued`, `document.processing`, `document.ready`, `document.failed` and `document.deleted`, with the document as data.',
      params,
      querystring: documentEventsQuery,
      response: eventStreamResponse,
    }),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { id } = request.params;
      await requireReadable({ documents, knowledge }, organizationId, id);
      return replies.sendEvents(request, reply, organizationId, id);
    },
  );
}

/** @throws HttpError 404 for a document that the organization does not have, or whose graph it does not have */
async function requireReadable(
  { documents, knowledge }: Pick<DocumentRouteParts, 'documents' | 'knowledge'>,
  organizationId: EntityId,
  id: EntityId,
): Promise<Document> {
  const document = await documents.find(organizationId, id);
  const graphId = document?.knowledgeGraph;
  const isReadable =
    document !== null && (graphId == null || (await knowledge.graph(organizationId, graphId)) !== null);
  if (!isReadable) throw notFound();
  return document;
}

function contentRoute(app: HttpApp, parts: DocumentRouteParts): void {
  app.get(
    '/api/v1/documents/:id/content',
    reads({
      operationId: 'getDocumentContent',
      summary: 'Read what a document says: its text, or the file that was uploaded',
      description: 'As a download of its content type. Of pages of crawls it is the readable text, as Markdown.',
      params,
      response: {
        200: { description: 'The content', content: { 'application/octet-stream': { schema: z.unknown() } } },
        304: z.null().describe('`If-None-Match` names the content'),
      },
    }),
    async (request, reply) => {
      const { id } = request.params;
      const { hash, contentType } = await requireReadable(parts, request.principal.organizationId, id);
      const etag = `"${hash}"`;
      void reply.header('etag', etag).header('cache-control', 'private, no-cache');
      if (request.headers['if-none-match']?.includes(etag)) return reply.code(304).send();
      const { body } = await parts.documents.contents.read(id, hash);
      return reply
        .headers({
          'content-type': contentType,
          'content-disposition': `attachment; filename="${id}.${extensionOf(contentType)}"`,
          'content-security-policy': "default-src 'none'; sandbox",
          'x-content-type-options': 'nosniff',
        })
        .send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    },
  );
}

function createRoute(app: HttpApp, parts: DocumentRouteParts): void {
  app.post(
    '/api/v1/documents',
    {
      ...writes({
        operationId: 'createDocument',
        summary: 'Create a document, or change the one with the same `external_id`',
        description:
          'Exactly one of `text`, `data` and `media` is the content. Files are uploaded: see `uploadDocument`.',
        body: createDocumentBody,
        response,
      }),
      bodyLimit: MAX_JSON_BYTES,
    },
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { knowledge_graph, name, external_id } = request.body;
      await requireGraph(parts.knowledge, organizationId, knowledge_graph);
      const content = await contentOf(request.body, (id) => parts.media.file(organizationId, id));
      return put(request, reply, parts, { knowledgeGraph: knowledge_graph, name, externalId: external_id, ...content });
    },
  );
}

function uploadRoute(app: HttpApp, parts: DocumentRouteParts): void {
  app.post(
    '/api/v1/documents/uploads',
    {
      ...writes({
        operationId: 'uploadDocument',
        summary: 'Create a document from a file, or change the one with the same `external_id`',
        description: `The body is the file, and \`Content-Type\` one of ${CONTENT_TYPES.join(', ')}.`,
        consumes: [...CONTENT_TYPES],
        querystring: uploadQuery,
        body: uploadBody,
        response,
      }),
      bodyLimit: MAX_DOCUMENT_BYTES,
    },
    async (request, reply) => {
      const { body, query } = request;
      const contentType = contentTypeOf(request.headers['content-type']);
      if (!(body instanceof Uint8Array) || body.length === 0)
        throw invalid(['body'], 'Field required', null, 'missing');
      const { knowledge_graph, name, external_id } = query;
      await requireGraph(parts.knowledge, request.principal.organizationId, knowledge_graph, 'query');
      const content = { contentType, bytes: body };
      return put(request, reply, parts, { knowledgeGraph: knowledge_graph, name, externalId: external_id, ...content });
    },
  );
}

function deleteRoute(app: HttpApp, { documents, knowledge }: DocumentRouteParts): void {
  const replies = new EntityReplies(documents, errors);
  app.delete(
    '/api/v1/documents/:id',
    writes({
      operationId: 'deleteDocument',
      summary: 'Delete a document; its facts are withdrawn from the graph',
      params,
      response: { 204: z.null().describe('The document is deleted') },
    }),
    async (request, reply) => {
      const { id } = request.params;
      await requireReadable({ documents, knowledge }, request.principal.organizationId, id);
      replies.accepted(request, reply, await documents.remove(commandContext(request), id));
      return reply.code(204).send();
    },
  );
}

type Given = GivenContent & {
  readonly name: string;
  readonly knowledgeGraph: EntityId;
  readonly externalId: string | null | undefined;
};

async function put(
  request: FastifyRequest,
  reply: FastifyReply,
  { documents }: Pick<DocumentRouteParts, 'documents'>,
  { externalId = null, ...given }: Given,
): Promise<FastifyReply> {
  const context = commandContext(request);
  const { organizationId, commandId } = context;
  const id = externalId === null ? commandId : documentIdOf(organizationId, given.knowledgeGraph, externalId);
  const result = await documents.put(context, { id, externalId, ...given });
  return new EntityReplies(documents, errors).sendResult(request, reply, result);
}
