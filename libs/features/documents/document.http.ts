import { z } from 'zod';

import { type Knowledge, requireGraph } from '#libs/features/knowledge/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { declareReads, EntityReplies, type EntityResult, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  type HttpApp,
  invalid,
  notFound,
  refuseCompression,
  routesTagged,
  downloadedFile,
} from '#libs/platform/http/index.ts';

import { MAX_DOCUMENT_BYTES } from './document.content.ts';
import { contentOf, contentTypeOf, type GivenContent, MAX_JSON_BYTES, type MediaFiles } from './document.inputs.ts';
import { type DocumentFacets, type Documents, documentSchema } from './document.read.ts';
import {
  CONTENT_TYPES,
  createDocumentBody,
  documentFilters,
  documentParams,
  extensionOf,
  uploadBody,
  uploadQuery,
} from './document.schemas.ts';
import {
  type Document,
  type DocumentEvent,
  documentIdOf,
  type DocumentRejection,
  type DocumentState,
} from './document.ts';

interface DocumentRouteParts {
  readonly documents: Documents;
  readonly knowledge: Pick<Knowledge, 'graph'>;
  readonly media: MediaFiles;
}

const { reads, writes } = routesTagged('documents');
const params = documentParams;
const response = { 200: documentSchema };
type Replies = EntityReplies<DocumentState, DocumentEvent, DocumentFacets, DocumentRejection>;

const errors: RejectionErrors<DocumentRejection> = { other_document: notFound };

export function documentRoutes(app: HttpApp, parts: DocumentRouteParts): void {
  const replies = new EntityReplies(parts.documents, errors);
  readRoutes(app, replies, parts);
  contentRoute(app, parts);
  createRoute(app, replies, parts);
  // Files have parsers of their own, which must not apply to other routes.
  void app.register((files: HttpApp, _options, done) => {
    files.removeContentTypeParser('application/json');
    files.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, parsed) => {
      refuseCompression(request.headers);
      parsed(null, body);
    });
    uploadRoute(files, replies, parts);
    done();
  });
  deleteRoute(app, replies, parts);
}

function readRoutes(app: HttpApp, replies: Replies, parts: DocumentRouteParts): void {
  declareReads(app, replies, {
    path: '/api/v1/documents',
    tag: 'documents',
    params,
    schema: documentSchema,
    list: {
      operationId: 'listDocuments',
      summary: 'List documents, newest first',
      filters: documentFilters,
      facets: ({ knowledge_graph, crawl, status }) => ({ knowledge_graph, crawl, status }),
    },
    one: { operationId: 'getDocument', summary: 'Read a document' },
    events: {
      operationId: 'streamDocumentEvents',
      summary: 'Follow the progress of a document',
      description:
        'Server-sent events: `document.queued`, `document.processing`, `document.ready`, `document.failed` and `document.deleted`, with the document as data.',
    },
    admit: (organizationId, id) => requireReadable(parts, organizationId, id),
  });
}

/** @throws HttpError 404 for a document that the organization does not have, or whose graph it does not have */
async function requireReadable(
  { documents, knowledge }: DocumentRouteParts,
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
        200: { description: 'The content', content: { 'application/octet-stream': { schema: downloadedFile } } },
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

function createRoute(app: HttpApp, replies: Replies, parts: DocumentRouteParts): void {
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
      const given = { knowledgeGraph: knowledge_graph, name, externalId: external_id, ...content };
      return replies.sendResult(request, reply, await put(commandContext(request), parts, given));
    },
  );
}

function uploadRoute(app: HttpApp, replies: Replies, parts: DocumentRouteParts): void {
  app.post(
    '/api/v1/documents/uploads',
    {
      ...writes({
        operationId: 'uploadDocument',
        summary: 'Create a document from a file, or change the one with the same `external_id`',
        description:
          'The body is the file. Its type is found by the ending of `name` and the content, unless `Content-Type` is one of ' +
          `${CONTENT_TYPES.join(', ')}.`,
        // Generated clients send one type, whatever the file is.
        consumes: ['application/octet-stream'],
        querystring: uploadQuery,
        body: uploadBody,
        response,
      }),
      bodyLimit: MAX_DOCUMENT_BYTES,
    },
    async (request, reply) => {
      const { body, query } = request;
      if (!(body instanceof Uint8Array) || body.length === 0)
        throw invalid(['body'], 'Field required', null, 'missing');
      const contentType = contentTypeOf(request.headers['content-type'], query.name, body);
      const { knowledge_graph, name, external_id } = query;
      await requireGraph(parts.knowledge, request.principal.organizationId, knowledge_graph, 'query');
      const content = { contentType, bytes: body };
      const given = { knowledgeGraph: knowledge_graph, name, externalId: external_id, ...content };
      return replies.sendResult(request, reply, await put(commandContext(request), parts, given));
    },
  );
}

function deleteRoute(app: HttpApp, replies: Replies, parts: DocumentRouteParts): void {
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
      await requireReadable(parts, request.principal.organizationId, id);
      replies.accepted(request, reply, await parts.documents.remove(commandContext(request), id));
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
  context: CommandContext,
  { documents }: DocumentRouteParts,
  { externalId = null, ...given }: Given,
): Promise<EntityResult<Document, DocumentRejection>> {
  const { organizationId, commandId } = context;
  const id = externalId === null ? commandId : documentIdOf(organizationId, given.knowledgeGraph, externalId);
  return documents.put(context, { id, externalId, ...given });
}
