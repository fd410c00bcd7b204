import type { Readable } from 'node:stream';

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { type Blob, type BlobStore, BlobTooLarge } from '#libs/platform/blobs/index.ts';
import { EntityReplies } from '#libs/platform/entity/index.ts';
import {
  ARRIVING_BODY_TIMEOUT_MS,
  arrivingBody,
  commandContext,
  type HttpApp,
  HttpError,
  invalid,
  notFound,
  ConcurrencyLimit,
  refuseCompression,
  refuseIfMatch,
  routesTagged,
} from '#libs/platform/http/index.ts';

import { createItem, descriptionOf, type OwnDestinations, requireDestinations } from './media.creation.ts';
import { withAddresses } from './media.files.ts';
import { ofOwnUpload, UPLOADED_TO_CHANNEL } from './media.members.ts';
import { type MediaItems, mediaSchema } from './media.read.ts';
import { uploadQuery } from './media.schemas.ts';
import { otherOffset, quotaExceeded, sendState, sendStateHeaders, tooLarge } from './upload.replies.ts';
import { fileBody, PART_TYPE, patchHeaders, postHeaders, uploadParams, uploadSchema } from './upload.schemas.ts';
import type { UploadQuota } from './upload-quota.ts';
import {
  MAX_FILE_BYTES,
  MAX_PARTS,
  type Upload,
  UPLOAD_VALID_MS,
  UploadContinued,
  UploadGone,
  type Uploads,
} from './uploads.ts';

interface UploadRouteParts extends OwnDestinations {
  readonly media: MediaItems;
  readonly blobs: BlobStore;
  readonly uploads: Uploads;
  readonly quota: UploadQuota;
}

const { writes } = routesTagged('media');
/** Of tus, the protocol of resumable uploads: https://tus.io/protocols/resumable-upload */
const TUS_VERSION = '1.0.0';

/** Whole uploads in one request, and resumable ones by tus 1.0.0 with the extensions creation, expiration and termination. */
export function uploadRoutes(app: HttpApp, parts: UploadRouteParts): void {
  const concurrent = new ConcurrencyLimit({
    max: 500,
    maxOfKey: 50,
    refusal: () => new HttpError(429, 'too_many_uploads', 'Too many uploads at the same time', { 'retry-after': '5' }),
  });
  const releases = new WeakMap<FastifyRequest, () => void>();
  void app.register((files: HttpApp, _options, done) => {
    files.addHook('preParsing', beginTus);
    files.addHook('preParsing', async (request, reply) => {
      if (request.method === 'POST' || request.method === 'PATCH')
        releases.set(request, concurrent.takeUntilEnd(request.principal.keyId, reply.raw));
    });
    // Bytes of a refused upload that still arrive are discarded, and take no place of another upload.
    files.addHook('onSend', async (request) => releases.get(request)?.());
    // Parsers of their own, which must not apply to other routes.
    files.removeAllContentTypeParsers();
    files.addContentTypeParser('*', (request: FastifyRequest, content: Readable) => bodyOf(request, content, parts));
    optionsRoutes(files);
    postRoute(files, parts);
    patchRoute(files, parts);
    stateRoutes(files, parts);
    done();
  });
}

/** The supported extensions, for clients that have no key yet. */
function optionsRoutes(app: HttpApp): void {
  for (const path of ['/api/v1/media/uploads', '/api/v1/media/uploads/:id']) {
    app.options(path, { config: { public: 'counted' }, schema: { hide: true } }, (_request, reply) => {
      void reply.headers({ 'tus-resumable': TUS_VERSION, 'tus-version': TUS_VERSION, 'tus-max-size': MAX_FILE_BYTES });
      return reply.header('tus-extension', 'creation,expiration,termination').code(204).send();
    });
  }
}

type PreParsing = (request: FastifyRequest, reply: FastifyReply, payload: Readable) => Promise<Readable>;

const beginTus: PreParsing = async (request, reply, payload) => {
  const { 'tus-resumable': version, 'upload-length': length, 'upload-metadata': metadata } = request.headers;
  if (version !== undefined && version !== TUS_VERSION) {
    throw new HttpError(412, 'unsupported_version', `Only version ${TUS_VERSION} of tus is supported`, {
      'tus-version': TUS_VERSION,
    });
  }
  void reply.header('tus-resumable', TUS_VERSION);
  // Without a body, the fingerprint of a request with an Idempotency-Key consists of these.
  if (length !== undefined) request.body = { length, metadata };
  return payload;
};

/** The stored blob of a whole upload; the content itself of a part. */
async function bodyOf(request: FastifyRequest, content: Readable, { blobs }: UploadRouteParts): Promise<unknown> {
  refuseCompression(request.headers);
  if (request.method === 'PATCH') return content;
  const length = Number(request.headers['content-length'] ?? 0);
  if (request.headers['upload-length'] !== undefined) {
    if (length > 0 || request.headers['transfer-encoding'] !== undefined) {
      throw invalid(['body'], 'a resumable upload is created without content', null);
    }
    return request.body;
  }
  if (length > MAX_FILE_BYTES) throw tooLarge();
  return blobs.put(arrivingBody(request), { maxBytes: MAX_FILE_BYTES }).catch((error: unknown) => {
    throw error instanceof BlobTooLarge ? tooLarge() : error;
  });
}

const NO_FILE = 'the body is the file, and there is none; `Upload-Length` without a body begins a resumable upload';

function postRoute(app: HttpApp, parts: UploadRouteParts): void {
  app.post(
    '/api/v1/media/uploads',
    {
      ...writes(
        {
          operationId: 'uploadMedia',
          summary: 'Create a media item from a file, or begin a resumable upload',
          description:
            'The body is the file, of any `Content-Type`: the type is found out from the content. With `Upload-Length` and ' +
            'without a body, it begins a resumable upload (tus 1.0.0), whose `Location` is in the reply.',
          consumes: ['application/octet-stream'],
          querystring: uploadQuery,
          headers: postHeaders,
          body: fileBody,
          response: { 200: mediaSchema, 201: uploadSchema },
        },
        UPLOADED_TO_CHANNEL,
      ),
      handlerTimeout: ARRIVING_BODY_TIMEOUT_MS,
      preHandler: refuseIfMatch,
    },
    async (request, reply) => {
      const { query } = request;
      const length = request.headers['upload-length'];
      if (length !== undefined && length > MAX_FILE_BYTES) throw tooLarge();
      const file = request.body as Blob | undefined;
      if (length === undefined && !file?.bytes) throw invalid(['body'], NO_FILE, null);
      await requireDestinations(request, parts, query, 'query');
      if (length !== undefined) return begin(request, reply, parts, { length, described: descriptionOf(query) });
      const created = await createItem(request, parts, {
        ...descriptionOf(query),
        sourceUrl: null,
        file: file ?? null,
      });
      return new EntityReplies(parts.media, {}, withAddresses).sendResult(request, reply, created);
    },
  );
}

async function begin(
  request: FastifyRequest,
  reply: FastifyReply,
  { uploads, quota }: UploadRouteParts,
  { length, described }: Pick<Upload, 'length' | 'described'>,
): Promise<FastifyReply> {
  const { commandId: id, organizationId, at } = commandContext(request);
  const metadata = request.headers['upload-metadata']?.toString() ?? null;
  const name = described.name || fileNameOf(metadata ?? '');
  const expiresAtMs = Date.parse(at) + UPLOAD_VALID_MS;
  const { keyId, principalId: ownerId } = request.principal;
  const exceeded = await quota.take({ organizationId, id, keyId, bytes: length, expiresAtMs });
  if (exceeded !== null) throw quotaExceeded(exceeded, length);
  await uploads.begin(organizationId, id, {
    length,
    expiresAtMs,
    ownerId,
    metadata,
    described: { ...described, name },
  });
  void reply
    .code(201)
    .header('location', request.server.publicAddress.pathOf(request.raw, `/api/v1/media/uploads/${id}`));
  const upload = await existing(uploads, organizationId, id);
  // Begun again by a repeated request after its end.
  if (upload.offset === upload.length) await quota.release(upload);
  return sendState(reply, upload);
}

/** The name in `Upload-Metadata`: pairs of a key and a Base64 value, separated by commas. */
function fileNameOf(metadata: string): string {
  const [, encoded] = /(?:^|,)\s*(?:file)?name ([\w+/=]+)/.exec(metadata) ?? [];
  const parsed = uploadQuery.shape.name.safeParse(Buffer.from(encoded ?? '', 'base64').toString());
  if (parsed.success) return parsed.data;
  throw invalid(['header', 'upload-metadata'], 'the name of a file has at most 256 characters', metadata);
}

function patchRoute(app: HttpApp, parts: UploadRouteParts): void {
  const { uploads } = parts;
  app.patch(
    '/api/v1/media/uploads/:id',
    {
      ...writes({
        operationId: 'continueMediaUpload',
        summary: 'Continue a resumable upload at its offset; the last part creates the media item with the same id',
        consumes: [PART_TYPE],
        params: uploadParams,
        headers: patchHeaders,
        body: fileBody,
        response: { 204: z.null().describe('The part is stored; `Upload-Offset` is that after it') },
      }),
      // The offset says whether a part is there.
      config: { scope: 'write', members: ofOwnUpload(uploads), ignoresIdempotencyKey: true },
      handlerTimeout: ARRIVING_BODY_TIMEOUT_MS,
      preHandler: refuseIfMatch,
    },
    async (request, reply) => {
      const upload = await existing(uploads, request.principal.organizationId, request.params.id);
      if (request.headers['content-type'] !== PART_TYPE) {
        throw new HttpError(415, 'unsupported_media_type', `Content-Type must be ${PART_TYPE}`);
      }
      if (request.headers['upload-offset'] !== upload.offset) throw otherOffset(upload.offset);
      const isTooLarge = Number(request.headers['content-length'] ?? 0) > upload.length - upload.offset;
      if (isTooLarge) throw tooLarge('The content is longer than the rest of the upload');
      if (upload.parts.length >= MAX_PARTS) throw invalid(['body'], `an upload has at most ${MAX_PARTS} parts`, null);
      const offset = await continued(request, reply, parts, upload);
      return sendStateHeaders(reply, { ...upload, offset })
        .code(204)
        .send();
    },
  );
}

/** @returns the offset after the content */
async function continued(
  request: FastifyRequest,
  reply: FastifyReply,
  { media, uploads, quota }: UploadRouteParts,
  upload: Upload,
): Promise<number> {
  try {
    const interruption = new AbortController();
    const content = {
      chunks: arrivingBody(request, { resumable: interruption.signal }),
      hasEnded: () => request.raw.destroyed,
      interrupt: (reason: Error) => interruption.abort(reason),
    };
    const offset = await uploads.append(upload, content, async (file) => {
      const created = await createItem(request, { media }, { ...upload.described, sourceUrl: null, file }, upload.id);
      const item = new EntityReplies(media, {}).accepted(request, reply, created);
      if (item.file?.hash !== file.hash) throw new UploadContinued();
    });
    if (offset === upload.length) await quota.release(upload);
    return offset;
  } catch (error) {
    if (error instanceof UploadContinued) throw otherOffset();
    if (error instanceof UploadGone) throw notFound();
    if (error instanceof BlobTooLarge) throw tooLarge('The content is longer than the rest of the upload');
    throw error;
  }
}

function stateRoutes(app: HttpApp, { uploads, quota }: UploadRouteParts): void {
  app.get(
    '/api/v1/media/uploads/:id',
    writes(
      {
        operationId: 'getMediaUpload',
        summary: 'Read how much of a resumable upload has arrived',
        description:
          'Clients call HEAD before they continue: it ends a request that is still sending, and stores the bytes that have arrived.',
        params: uploadParams,
        response: { 200: uploadSchema },
      },
      ofOwnUpload(uploads),
    ),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { id } = request.params;
      if (request.method === 'HEAD') await uploads.interrupt(organizationId, id);
      return sendState(reply, await existing(uploads, organizationId, id));
    },
  );

  app.delete(
    '/api/v1/media/uploads/:id',
    {
      ...writes(
        {
          operationId: 'cancelMediaUpload',
          summary: 'Cancel a resumable upload; the media item of a complete one stays',
          params: uploadParams,
          response: { 204: z.null().describe('The upload is cancelled') },
        },
        ofOwnUpload(uploads),
      ),
      preHandler: refuseIfMatch,
    },
    async (request, reply) => {
      const { id, organizationId } = await existing(uploads, request.principal.organizationId, request.params.id);
      await uploads.remove(organizationId, id);
      await quota.release({ organizationId, id });
      return reply.code(204).send();
    },
  );
}

/** @throws HttpError 404 */
async function existing(uploads: Uploads, organizationId: string, id: string): Promise<Upload> {
  const upload = await uploads.find(organizationId, id);
  if (upload === null) throw notFound();
  return upload;
}
