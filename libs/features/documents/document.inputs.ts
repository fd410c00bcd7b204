import { MIMEType } from 'node:util';

import type { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { HttpError, invalid, invalidBody, ValidationFailure } from '#libs/platform/http/index.ts';

import { MAX_DOCUMENT_BYTES } from './document.content.ts';
import type { DocumentPut } from './document.read.ts';
import { CONTENT_TYPES, type ContentType, type createDocumentBody } from './document.schemas.ts';
import { isGeneric, shownType } from './extract/file-type.ts';

/** JSON escapes take at most as much again as most texts. */
export const MAX_JSON_BYTES = 2 * MAX_DOCUMENT_BYTES + 64 * 1024;

/** Port: the files of media items. Their feature depends on this one. */
export interface MediaFiles {
  /** Null for a missing item, or one of another organization. @throws `Fault` `store_unavailable` */
  file(organizationId: EntityId, id: EntityId): Promise<MediaFile | null>;
}

export interface MediaFile {
  readonly name: string;
  /** Null until the type is found out, and where that failed. */
  readonly mimeType: string | null;
  readonly bytes: number;
  read(): Promise<Uint8Array>;
}

export type GivenContent = Pick<DocumentPut, 'contentType' | 'data'> & { readonly name?: string } & (
    { readonly text: string } | { readonly bytes: Uint8Array }
  );

type CreateBody = z.output<typeof createDocumentBody>;

/** @throws ValidationFailure 422 unless there is exactly one content, of a type that it can have; HttpError 413 */
export async function contentOf(
  body: CreateBody,
  mediaFile: (id: EntityId) => Promise<MediaFile | null>,
): Promise<GivenContent> {
  const { text, data, media, content_type: type } = body;
  const given = (['text', 'data', 'media'] as const).filter((member) => body[member] != null);
  const [member, other] = given;
  if (member === undefined) {
    const msg = 'Field required';
    throw new ValidationFailure([{ type: 'missing', loc: ['body', 'text'], msg, input: null }]);
  }
  if (other !== undefined) throw invalidBody(body, other, 'a document has one of text, data and media');
  if (media != null) return contentOfMedia(body, await mediaFile(media));
  if (data != null) {
    if (type != null && type !== 'application/json') {
      throw invalidBody(body, 'content_type', 'the type of data is application/json');
    }
    return { contentType: 'application/json', text: JSON.stringify(data), data: jsonOf(data) };
  }
  if (type === 'application/pdf') throw invalidBody(body, 'content_type', 'upload the file instead');
  if (Buffer.byteLength(text ?? '') > MAX_DOCUMENT_BYTES) throw tooLarge('The text of a document');
  return { contentType: type ?? 'text/plain', text: text ?? '' };
}

/** A text is Markdown or JSON only where the request says so: the content does not show it. */
async function contentOfMedia(body: CreateBody, file: MediaFile | null): Promise<GivenContent> {
  if (file === null) throw invalidBody(body, 'media', 'there is no such media item');
  if (file.mimeType === null) throw invalidBody(body, 'media', 'the media item is not ready');
  const found = CONTENT_TYPES.find((type) => type === file.mimeType);
  if (found === undefined) throw invalidBody(body, 'media', `a document cannot be read from ${file.mimeType}`);
  const { name, content_type: stated } = body;
  const contentType = stated ?? found;
  if (contentType !== found && (found === 'application/pdf' || contentType === 'application/pdf')) {
    throw invalidBody(body, 'content_type', `the file is ${found}`);
  }
  if (file.bytes > MAX_DOCUMENT_BYTES) throw tooLarge('The file of a document');
  return { contentType, bytes: await file.read(), name: name || file.name };
}

function tooLarge(what: string): HttpError {
  return new HttpError(413, 'body_too_large', `${what} has at most 5 MiB`);
}

/** Parsed from JSON by the server. */
const jsonOf = (data: Record<string, unknown>) => data as NonNullable<DocumentPut['data']>;

/** Other names of the types. */
const ALIASES: Readonly<Record<string, ContentType>> = {
  'application/x-pdf': 'application/pdf',
  'application/xhtml+xml': 'text/html',
  'text/json': 'application/json',
  'text/x-markdown': 'text/markdown',
};

const ENDINGS: Readonly<Record<string, ContentType>> = {
  htm: 'text/html',
  html: 'text/html',
  json: 'application/json',
  markdown: 'text/markdown',
  md: 'text/markdown',
  xhtml: 'text/html',
};

/**
 * What a file is read as: a PDF if it begins as a PDF, else its declared type; where that says nothing, the ending of its
 * name, and then what it begins with.
 *
 * @param declared `type/subtype`; empty if none is declared
 * @returns null for a file that is read as nothing
 */
export function fileTypeOf(declared: string, name: string, bytes: Uint8Array): ContentType | null {
  const type = CONTENT_TYPES.find((known) => known === declared) ?? ALIASES[declared] ?? null;
  if (type === null && !isGeneric(declared)) return null;
  const shown = shownType(bytes);
  if (shown === 'application/pdf') return shown;
  if (type !== null) return type;
  return shown && (ENDINGS[/\.(\w+)$/.exec(name.toLowerCase())?.[1] ?? ''] ?? shown);
}

/**
 * `type/subtype`, and the charset of texts.
 *
 * @param name of the file, if it is known
 * @throws ValidationFailure 422 for a file that no document can be read from
 */
export function contentTypeOf(header: string | undefined, name: string, bytes: Uint8Array): DocumentPut['contentType'] {
  const declared = mimeTypeOf(header);
  const type = fileTypeOf(declared?.essence ?? '', name, bytes);
  if (type === null) {
    const problem = `the content type of a document is one of ${CONTENT_TYPES.join(', ')}`;
    throw invalid(['header', 'content-type'], problem, header ?? null);
  }
  const charset = declared?.params.get('charset');
  return charset && type !== 'application/pdf' ? `${type};charset=${charset}` : type;
}

function mimeTypeOf(header = ''): MIMEType | null {
  try {
    return new MIMEType(header);
  } catch {
    return null;
  }
}
