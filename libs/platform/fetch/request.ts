import type { Dispatcher } from 'undici';

import { VERSION } from '#libs/platform/config/index.ts';

import { ACCEPT_ENCODING } from './body.ts';

export interface RequestOptions {
  /** Default: GET. */
  readonly method?: string;
  /** Names in any case. Other origins, after a redirect, only get `accept`, `accept-language` and `content-type`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The header `Accept`. */
  readonly accept?: string;
}

export interface Request {
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** Headers that the fetcher sets, or that change how a connection is used. */
const OWN_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);

/** The other headers may hold secrets, or belong to the first origin. */
const SENT_TO_OTHER_ORIGINS = new Set(['accept', 'accept-language', 'content-type']);

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** @throws TypeError for a header that callers must not set */
export function requestOf({ method = 'GET', headers = {}, body, accept }: RequestOptions): Request {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const refused = given.find(([name]) => OWN_HEADERS.has(name));
  if (refused !== undefined) throw new TypeError(`the fetcher sets the header ${refused[0]} itself`);
  return {
    method: method.toUpperCase(),
    headers: { ...(accept === undefined ? {} : { accept }), ...Object.fromEntries(given) },
    body: body ?? null,
  };
}

/** @param cookies the header `Cookie`, or nothing */
export function dispatchOptionsOf(
  url: URL,
  { method, headers, body }: Request,
  cookies: string,
): Dispatcher.RequestOptions {
  return {
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method,
    headers: {
      ...headers,
      ...(cookies !== '' && { cookie: cookies }),
      'user-agent': `Parley/${VERSION}`,
      'accept-encoding': ACCEPT_ENCODING,
    },
    body,
  };
}

/** Where a response redirects to; null if it does not. */
export function locationOf({ statusCode, headers }: Dispatcher.ResponseData): string | null {
  const { location } = headers;
  if (!REDIRECTS.has(statusCode) || location === undefined) return null;
  return Array.isArray(location) ? (location[0] ?? null) : location;
}

/** The request that follows a redirect, as browsers form it (Fetch standard, "HTTP-redirect fetch"). */
export function redirected(request: Request, status: number, from: URL, to: URL): Request {
  const { method, body } = request;
  const becomesGet =
    status === 303 ? method !== 'GET' && method !== 'HEAD' : (status === 301 || status === 302) && method === 'POST';
  const headers = Object.entries(request.headers).filter(
    ([name]) =>
      (from.origin === to.origin || SENT_TO_OTHER_ORIGINS.has(name)) && !(becomesGet && name.startsWith('content-')),
  );
  return {
    method: becomesGet ? 'GET' : method,
    headers: Object.fromEntries(headers),
    body: becomesGet ? null : body,
  };
}
