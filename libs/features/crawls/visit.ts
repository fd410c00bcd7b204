import { admitText } from '#libs/kernel/text.ts';
import {
  type ContentType,
  decodeText,
  type DocumentFacts,
  ExtractionError,
  type ExtractionPool,
  isGeneric,
  isPdf,
  MAX_DOCUMENT_BYTES,
  type Page,
  refreshTarget,
  shownType,
} from '#libs/features/documents/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { parsedJson } from '#libs/kernel/json.ts';
import { type Fetched, type Fetcher, FetchError } from '#libs/platform/fetch/index.ts';

import type { CrawledPage, FoundUrl, Website } from './crawl.ts';
import { normalUrl } from './frontier.ts';
import { robotsTag } from './robots.ts';

const PAGE_TIMEOUT_MS = 20_000;
const MAX_TITLE = 300;
const ACCEPT =
  'text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, application/pdf;q=0.7, */*;q=0.1';

/** The content of a page. */
export interface PageContent {
  readonly contentType: ContentType;
  /** Text, or the file of a PDF. */
  readonly body: string | Uint8Array;
  readonly title: string | null;
  readonly structured: object | null;
  readonly links: readonly string[];
  readonly hasAllLinks: boolean;
  /** Where browsers go from the page at once, without being asked to. */
  readonly forward: string | null;
  /** As the page states it; null if it does not. */
  readonly canonical: string | null;
  readonly isIndexed: boolean;
  readonly website: Website | null;
  /** If the id of its document was given. */
  readonly facts: DocumentFacts | null;
}

/** The outcome of the request for a page. */
export type Visit =
  | {
      readonly kind: 'content';
      readonly response: Fetched;
      readonly content: PageContent;
      /** Decoded bytes of the responses: of the page, and of the pages that forwarded to it. */
      readonly bytes: number;
      readonly isForwarded: boolean;
    }
  /** 304: the page is as it was in an earlier scan. */
  | { readonly kind: 'unchanged'; readonly status: number }
  | NoContent;

/** Decoded bytes of the responses. */
export function bytesOf(visited: Visit): number {
  return visited.kind === 'unchanged' ? 0 : visited.bytes;
}

export interface NoContent {
  readonly kind: 'nothing';
  readonly outcome: Extract<CrawledPage['outcome'], 'gone' | 'skipped' | 'failed' | 'duplicate'>;
  readonly reason: string;
  readonly status: number | null;
  readonly bytes: number;
  /** Of a duplicate: the document of the other page. */
  readonly documentId: string | null;
}

/** Ends a visit that is redirected to where it must not go. */
export class RedirectRefused extends Error {
  override readonly name = 'RedirectRefused';
  readonly outcome: NoContent['outcome'];
  readonly reason: string;
  readonly documentId: string | null;

  constructor(outcome: NoContent['outcome'], reason: string, documentId: string | null = null) {
    super(reason);
    this.outcome = outcome;
    this.reason = reason;
    this.documentId = documentId;
  }
}

export interface VisitOptions {
  /** Of an earlier scan, whose document is still right if the page is unchanged. */
  readonly validators: Pick<CrawledPage, 'etag' | 'lastModified'> | undefined;
  readonly signal: AbortSignal;
  readonly organizationId: EntityId;
  /** The document of a page that was found at a URL, whose facts are extracted; null for none. */
  documentAt(url: string): EntityId | null;
  /** @throws RedirectRefused */
  onRedirect(to: string): Promise<void>;
}

export interface VisitTools {
  readonly fetcher: Fetcher;
  readonly extraction: Pick<ExtractionPool, 'readPage' | 'readPageWithFacts'>;
}

/** As many as HTTP redirects. */
const MAX_FORWARDS = 5;

/**
 * Requests a page and reads it, or the page that it forwards to. What is wrong with the page is a result.
 *
 * @throws Fault; the reason of `signal`
 */
export async function visit(tools: VisitTools, url: string, options: VisitOptions): Promise<Visit> {
  let response: Fetched | undefined;
  try {
    const seen = new Set<string>();
    let next = url;
    let bytes = 0;
    for (let forwards = 0; ; forwards += 1) {
      response = await request(tools, next, options);
      if (response.status === 304 && options.validators !== undefined) return { kind: 'unchanged', status: 304 };
      bytes += response.body.length;
      const read = await readResponse(tools, response, options);
      if (!('content' in read)) return { ...read, bytes };
      const { content } = read;
      const forward = normalUrl(content.forward ?? '');
      seen.add(next).add(response.url);
      if (forward === null || seen.has(forward) || forwards >= MAX_FORWARDS)
        return { kind: 'content', response, content, bytes, isForwarded: forwards > 0 };
      await options.onRedirect(forward);
      next = forward;
    }
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof RedirectRefused) {
      const { outcome, reason, documentId } = error;
      return { ...withoutContent(outcome, reason), documentId };
    }
    if (error instanceof FetchError) return { ...withoutContent('failed', error.reason), bytes: error.bytes };
    if (error instanceof ExtractionError && error.reason !== 'closed')
      return withoutContent('failed', 'unreadable', response);
    throw error;
  }
}

function request(
  { fetcher }: VisitTools,
  url: string,
  { validators, signal, onRedirect }: VisitOptions,
): Promise<Fetched> {
  return fetcher.fetch(url, {
    headers: { accept: ACCEPT, ...headersOf(validators) },
    maxBytes: MAX_DOCUMENT_BYTES,
    timeoutMs: PAGE_TIMEOUT_MS,
    signal,
    onRedirect,
  });
}

export function withoutContent(outcome: NoContent['outcome'], reason: string, response?: Fetched): NoContent {
  const { status = null, body } = response ?? {};
  return { kind: 'nothing', outcome, reason, status, bytes: body?.length ?? 0, documentId: null };
}

/** A page of which only the place is known. */
export function unvisitedPage({ url, depth }: FoundUrl): CrawledPage {
  return {
    url,
    depth,
    outcome: 'read',
    reason: null,
    status: null,
    canonicalUrl: null,
    title: null,
    documentId: null,
    hash: null,
    etag: null,
    lastModified: null,
    bytes: 0,
    characters: null,
    links: [],
  };
}

function headersOf({ etag, lastModified }: VisitOptions['validators'] = { etag: null, lastModified: null }) {
  return {
    ...(etag !== null && { 'if-none-match': etag }),
    ...(lastModified !== null && { 'if-modified-since': lastModified }),
  };
}

async function readResponse(
  tools: VisitTools,
  response: Fetched,
  options: VisitOptions,
): Promise<NoContent | { readonly content: PageContent }> {
  const { status } = response;
  if (status === 404 || status === 410) return withoutContent('gone', 'not_found', response);
  if (status < 200 || status > 299) return withoutContent('failed', `http_${status}`, response);
  const content = await readContent(tools, response, options);
  return content === null ? withoutContent('skipped', 'unsupported_type', response) : { content };
}

/** @returns null for content that is neither a page nor text */
async function readContent(
  { extraction }: VisitTools,
  { url, body, contentType, headers }: Fetched,
  { signal, organizationId, documentAt }: VisitOptions,
): Promise<PageContent | null> {
  const type = typeOf(contentType, body);
  const { isIndexed, isFollowed } = robotsTag(headers.get('x-robots-tag') ?? '');
  const refresh = refreshTarget(headers.get('refresh') ?? '');
  const forward = refresh && (URL.parse(refresh, url)?.href ?? null);
  const file = (as: ContentType): PageContent => ({
    contentType: as,
    body: as === 'application/pdf' ? body : decodeText(body, contentType).text,
    title: fileNameOf(url),
    structured: null,
    links: [],
    hasAllLinks: true,
    forward,
    canonical: null,
    isIndexed,
    website: null,
    facts: null,
  });
  const readPage = async (): Promise<{ readonly page: Page; readonly facts: DocumentFacts | null }> => {
    const source = { url, contentType };
    const documentId = isIndexed ? documentAt(url) : null;
    if (documentId !== null) return extraction.readPageWithFacts(body, source, documentId, { organizationId, signal });
    return { page: await extraction.readPage(body, source, { organizationId, signal }), facts: null };
  };
  switch (type) {
    case 'text/html':
    case 'application/xhtml+xml':
      return contentOf(await readPage(), { isIndexed, isFollowed, forward });
    case 'text/plain':
    case 'text/markdown':
    case 'application/pdf':
      return file(type);
    case 'application/json':
      return file(parsedJson(new TextDecoder().decode(body)) === undefined ? 'text/plain' : type);
    default:
      return null;
  }
}

/** The declared type, unless the content shows a PDF; where servers declare none that says something, what the content shows. */
export function typeOf(contentType: string | null, body: Uint8Array): string {
  const declared = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();
  if (declared === 'application/x-pdf' || isPdf(body)) return 'application/pdf';
  if (declared === '') return 'text/html';
  return isGeneric(declared) ? (shownType(body) ?? declared) : declared;
}

function contentOf(
  { page, facts }: { readonly page: Page; readonly facts: DocumentFacts | null },
  header: { readonly isIndexed: boolean; readonly isFollowed: boolean; readonly forward: string | null },
): PageContent {
  const { title, description, icon, language, robots, canonical, structured } = page;
  return {
    contentType: 'text/markdown',
    body: page.text,
    title: cut(title, MAX_TITLE),
    structured,
    links: robots.nofollow || !header.isFollowed ? [] : page.links,
    hasAllLinks: !page.linksTruncated,
    forward: header.forward ?? page.forward,
    canonical,
    isIndexed: header.isIndexed && !robots.noindex,
    website: {
      title: cut(title, MAX_TITLE),
      description: cut(description, 1_000),
      icon: cut(icon, 2_083),
      language: cut(language, 64),
    },
    facts,
  };
}

function cut(text: string | null, max: number): string | null {
  return text === null ? null : admitText(text, max);
}

function fileNameOf(url: string): string | null {
  const name = new URL(url).pathname.split('/').at(-1) ?? '';
  return name === '' ? null : admitText(decoded(name), MAX_TITLE);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    // Bytes of another encoding than UTF-8.
    return name;
  }
}
