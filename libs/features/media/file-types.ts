import { isPdf } from '#libs/features/documents/extract/index.ts';

import type { FileType } from './media.ts';

/** The type that `file-type` found in the content; undefined for texts and unknown formats. */
export interface Detected {
  readonly mime: string;
  readonly ext: string;
}

/** @param start the first bytes of the file; used where no signature was found, and for XML, which many formats use */
export function fileTypeOf(detected: Detected | undefined, start: Uint8Array): FileType {
  const isMarkup = detected === undefined || detected.mime === 'application/xml';
  const text = isMarkup ? markupOf(start) : null;
  if (text !== null) return typed(text.mime, text.ext);
  if (detected !== undefined) return typed(detected.mime, detected.ext);
  return typed('application/octet-stream', 'bin');
}

/** Containers of video may hold audio only. */
export function withoutVideo({ mimeType, format, resourceType }: FileType): FileType {
  if (resourceType !== 'video') return { mimeType, format, resourceType };
  return typed(mimeType.replace('video/', 'audio/'), format);
}

function typed(mimeType: string, format: string): FileType {
  return { mimeType, format, resourceType: resourceTypeOf(mimeType) };
}

const ARCHIVES = /^application\/(zip|gzip|x-(tar|7z-compressed|bzip2|rar-compressed|xz|compress)|zstd|vnd\.rar)$/;
const DOCUMENTS =
  /^application\/(pdf|rtf|msword|postscript|epub\+zip|vnd\.(openxmlformats-officedocument|oasis\.opendocument|ms-)\b.*)/;

function resourceTypeOf(mimeType: string): string {
  const [kind = ''] = mimeType.split('/');
  if (['image', 'audio', 'video', 'text'].includes(kind)) return kind;
  if (DOCUMENTS.test(mimeType)) return 'document';
  if (ARCHIVES.test(mimeType)) return 'archive';
  return mimeType === 'application/xml' || mimeType === 'application/json' ? 'text' : 'other';
}

/** The beginning that a file of markup may have before its first element. */
const PREAMBLE = /^(?:\uFEFF|\s|<!--[^]*?-->|<\?xml[^]*?\?>|<!doctype(?![^>]*\b(?:html|svg)\b)[^>]*>)*/i;
/** The first elements by which the MIME Sniffing Standard knows HTML. */
const HTML =
  /^<(?:!doctype\s+html|(?:html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p|meta|link|main|article)[\s/>])/i;
const SVG = /^<(?:!doctype\s+svg|(?:\w{1,20}:)?svg[\s/>])/i;
/** A text is what it begins with: a manual of HTML mentions elements, and is a text. */
function markupOf(start: Uint8Array): Detected | null {
  if (isPdf(start)) return { mime: 'application/pdf', ext: 'pdf' };
  const text = textOf(start);
  if (text === null) return null;
  const first = text.replace(PREAMBLE, '');
  if (SVG.test(first)) return { mime: 'image/svg+xml', ext: 'svg' };
  if (HTML.test(first)) return { mime: 'text/html', ext: 'html' };
  if (/^\uFEFF?\s*<\?xml\s/i.test(text)) return { mime: 'application/xml', ext: 'xml' };
  return { mime: 'text/plain', ext: 'txt' };
}

/** As UTF-16 with its mark, else as UTF-8 or a legacy charset; null for what has control characters that texts lack. */
function textOf(start: Uint8Array): string | null {
  if (start.length === 0) return null;
  const [first, second] = start;
  const charset =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : null;
  const text = new TextDecoder(charset ?? 'latin1').decode(start);
  // oxlint-disable-next-line no-control-regex -- these are what tells files from texts
  return /[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]/.test(text) ? null : text;
}

/** Images that previews are made of. All others, SVG above all, never reach the image library. */
export function hasPreview({ mimeType }: FileType): boolean {
  return PREVIEWED.has(mimeType);
}

const PREVIEWED = new Set([
  'image/jpeg',
  'image/png',
  'image/apng',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/tiff',
]);
