import { Readable } from 'node:stream';

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { systemClock } from '#libs/kernel/clock.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { type Blob, type BlobStore, type ByteRange, missingBlob } from '#libs/platform/blobs/index.ts';
import type { Presentation } from '#libs/platform/entity/index.ts';
import { type ChannelAccess, notFound } from '#libs/platform/http/index.ts';

import { mediaEntity, type MediaItems } from './media.read.ts';
import type { Media, Preview } from './media.ts';

const VALID_MS = 60 * 60_000;
/** Addresses of one item are the same for this time, so that browsers can keep what they have fetched. */
const ROUNDED_MS = 15 * 60_000;
const CONTEXT = ['media file'];

/** The last one: the member that got the address, which must still take part in the channel of the item. */
const tokenPayload = z.tuple([z.string(), z.string(), z.enum(['preview', 'file']), z.int(), z.string().optional()]);
type Which = z.infer<typeof tokenPayload>[2];

/** Items with the addresses of their files, which expire after one to one and a quarter hours. */
export const withAddresses: Presentation<Media> = {
  of: async (items, request) => {
    const now = Date.parse(systemClock.now());
    const expiresAt = Math.ceil(now / ROUNDED_MS) * ROUNDED_MS + VALID_MS;
    const { organizationId, isMember, principalId } = request.principal;
    const holder = isMember ? [principalId] : [];
    const base = request.server.publicAddress.of(request.raw);
    const address = (id: EntityId, which: Which): string => {
      const token = request.server.tokens.seal(CONTEXT, [organizationId, id, which, expiresAt, ...holder]);
      return `${base}/api/v1/media/files/${token}`;
    };
    return items.map((item) => ({
      ...mediaEntity.resource(item),
      url: item.preview && address(item.id, 'preview'),
      file_url: item.file && address(item.id, 'file'),
    }));
  },
};

interface FileParts {
  readonly media: Pick<MediaItems, 'find'>;
  readonly access: ChannelAccess;
  readonly blobs: Pick<BlobStore, 'read' | 'size'>;
}

interface ServedFile extends Blob {
  readonly mimeType: string;
  readonly name: string;
}

/** Answers with the file that a signed address names. @throws HttpError 404; `Fault` `store_unavailable` */
export async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  token: string,
  { media, blobs, access }: FileParts,
): Promise<FastifyReply> {
  // 1. What the address names, if it is valid and the item still exists.
  const opened = tokenPayload.safeParse(request.server.tokens.open(CONTEXT, token));
  if (!opened.success) throw notFound();
  const [organizationId, id, which, expiresAt, holder] = opened.data;
  const leftMs = expiresAt - Date.parse(systemClock.now());
  const item = leftMs > 0 ? await media.find(organizationId, id) : null;
  const file = item && servedFile(item, which);
  if (file === null) throw notFound();
  if (holder !== undefined) {
    const member = { organizationId, principalId: holder };
    if (item?.channel == null || !(await access.admits(member, item.channel))) throw notFound();
  }

  // 2. The conditions of the request.
  const etag = `"${file.hash}"`;
  const cacheControl = `private, max-age=${Math.floor(leftMs / 1_000)}, immutable`;
  const headers = { ...headersOf(file), etag, 'cache-control': cacheControl };
  if (request.headers['if-none-match']?.includes(etag)) return reply.headers(headers).code(304).send();
  const range = rangeOf(request, etag, file.bytes);
  if (range === 'unsatisfiable') {
    return reply.headers(headers).code(416).header('content-range', `bytes */${file.bytes}`).send();
  }

  // 3. The content, or a part of it. Read before the headers are set: browsers would keep an error for as long.
  const { start, end } = range ?? { start: 0, end: file.bytes - 1 };
  const content = await contentOf(request, file, { start, end }, blobs);
  void reply
    .headers(headers)
    .code(range === null ? 200 : 206)
    .header('content-length', end - start + 1);
  if (range !== null) void reply.header('content-range', `bytes ${start}-${end}/${file.bytes}`);
  // A client that reads nothing for so long can continue with a range.
  reply.raw.setTimeout(request.server.server.requestTimeout);
  return reply.send(content);
}

async function contentOf(
  { method }: FastifyRequest,
  file: Blob,
  range: ByteRange,
  blobs: FileParts['blobs'],
): Promise<Readable> {
  if (method === 'HEAD') {
    if ((await blobs.size(file.hash)) !== file.bytes) throw missingBlob();
    return Readable.from([]);
  }
  const content = await blobs.read(file, range);
  if (content === null) throw missingBlob();
  return content;
}

function servedFile(item: Media, which: Which): ServedFile | null {
  const { preview, file, type } = item;
  if (which === 'preview') return preview && servedPreview(preview);
  return file && { ...file, mimeType: type?.mimeType ?? '', name: item.name || `file.${type?.format ?? 'bin'}` };
}

function servedPreview({ hash, bytes, mimeType }: Preview): ServedFile {
  if (mimeType === 'text/plain') return { hash, bytes, mimeType: 'text/plain; charset=utf-8', name: 'preview.txt' };
  return { hash, bytes, mimeType, name: 'preview.webp' };
}

/** Rendered by browsers without scripts. All others are downloads: HTML and SVG above all. */
const INLINE = /^(image\/(png|apng|jpeg|gif|webp|avif)|(audio|video)\/[\w.+-]+|text\/plain(; charset=utf-8)?)$/;
/** Types that a download may be labelled with. */
const LABELLED = /^(image\/(?!svg)|application\/(pdf|zip|gzip)$|application\/vnd\.)/;

function headersOf({ mimeType, name }: ServedFile): Record<string, string> {
  const isInline = INLINE.test(mimeType);
  return {
    'content-type': isInline || LABELLED.test(mimeType) ? mimeType : 'application/octet-stream',
    'content-disposition': `${isInline ? 'inline' : 'attachment'}; filename*=UTF-8''${encodedName(name)}`,
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
    // Pages of other origins show them.
    'cross-origin-resource-policy': 'cross-origin',
    'accept-ranges': 'bytes',
  };
}

/** The last part of a path, without control characters (RFC 8187). */
function encodedName(name: string): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  const plain = base.replaceAll(/[\p{Cc}\p{Cf}]/gu, '').replace(/^\.+/, '') || 'file';
  return encodeURIComponent(plain).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

/** @returns null for the whole content: also for several ranges, which servers may ignore (RFC 9110, 14.2) */
function rangeOf(request: FastifyRequest, etag: string, size: number): ByteRange | 'unsatisfiable' | null {
  const { range, 'if-range': ifRange } = request.headers;
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (ifRange !== undefined && ifRange !== etag) return null;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== '' && last !== '' && Number(last) < start) return null;
  return start > end ? 'unsatisfiable' : { start, end };
}
