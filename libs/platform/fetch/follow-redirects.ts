import type { CookieJar } from 'tough-cookie';
import type { Dispatcher } from 'undici';
import { unlessAborted } from '#libs/platform/lifecycle/index.ts';
import { type AllowedHost, VERSION } from '#libs/platform/config/index.ts';
import { FetchError, isDisconnection } from './fetch-error.ts';
import { parseTarget } from './target.ts';
import { ACCEPT_ENCODING } from './body.ts';

const DEFAULT_MAX_REDIRECTS = 5;
/** Of the body of a redirect, which is read so that its connection can be used again. */
const MAX_REDIRECT_BYTES = 16 * 1024;
const MAX_REDIRECT_BODY_MS = 1_000;

export interface RedirectOptions extends RequestOptions {
  /** Default: 5; with 0, a redirect fails with `too_many_redirects`. */
  readonly maxRedirects?: number;
  /** Called before each redirect is followed; an error that it throws ends the fetch. */
  onRedirect?(to: string, from: string): void | Promise<void>;
}

export interface Exchange {
  readonly dispatcher: Dispatcher;
  readonly allowHosts: readonly AllowedHost[];
  readonly signal: AbortSignal;
  /** Gets the URLs that are requested. */
  readonly route: URL[];
}

/** Requests a URL and what it redirects to, each of which is checked as the first one. @throws FetchError, and others */
export async function followRedirects(
  text: string,
  options: RedirectOptions,
  { dispatcher, allowHosts, signal, route }: Exchange,
): Promise<Dispatcher.ResponseData> {
  const { maxRedirects = DEFAULT_MAX_REDIRECTS } = options;
  const requested = new Set<string>();
  const cookies = new RedirectCookies();
  let request = requestOf(options);
  let url = parseTarget(text, allowHosts);
  for (;;) {
    signal.throwIfAborted();
    route.push(url);
    const sent = await cookies.of(url);
    requested.add(`${request.method} ${url.href} ${sent}`);
    // By itself, an aborted request only ends when its connection is there.
    const response = await unlessAborted(
      send(dispatcher, { ...dispatchOptionsOf(url, request, sent), signal }),
      signal,
    );
    const location = locationOf(response);
    if (location === null) return response;
    response.body
      .dump({ limit: MAX_REDIRECT_BYTES, signal: AbortSignal.timeout(MAX_REDIRECT_BODY_MS) })
      .catch(() => undefined);
    const next = parseTarget(location, allowHosts, url);
    request = redirected(request, response.statusCode, url, next);
    await cookies.take(response, url);
    if (requested.has(`${request.method} ${next.href} ${await cookies.of(next)}`)) {
      throw new FetchError('redirect_loop', next.href, 'the server redirects in a circle');
    }
    if (route.length > maxRedirects) {
      throw new FetchError('too_many_redirects', next.href, `the server redirects more than ${maxRedirects} times`);
    }
    await options.onRedirect?.(next.href, url.href);
    url = next;
  }
}

/**
 * A server may close a kept connection while a request is on its way to it. A request that changes nothing is then sent once
 * more (RFC 9110, 9.2.2), also where the connection was new, which undici does not tell. Other requests are not repeated,
 * because the server may have received them.
 */
async function send(dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  try {
    return await dispatcher.request(options);
  } catch (error) {
    if (!['GET', 'HEAD'].includes(options.method) || !isDisconnection(error)) throw error;
    return dispatcher.request(options);
  }
}

/** Cookies that redirects set: some sites redirect to the same URL until the request has their cookie. */
class RedirectCookies {
  #jar: CookieJar | undefined;

  /** The header `Cookie` of a request. */
  async of(url: URL): Promise<string> {
    return (await this.#jar?.getCookieString(url.href)) ?? '';
  }

  async take({ headers }: Dispatcher.ResponseData, from: URL): Promise<void> {
    const given = [headers['set-cookie'] ?? []].flat();
    if (given.length === 0) return;
    this.#jar ??= new (await import('tough-cookie')).CookieJar();
    // Like browsers, it ignores cookies that are not valid, or that belong to other sites.
    for (const cookie of given) await this.#jar.setCookie(cookie, from.href, { ignoreError: true });
  }
}

interface RequestOptions {
  /** Default: GET. */
  readonly method?: string;
  /** Names in any case. Other origins, after a redirect, only get `accept`, `accept-language` and `content-type`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The header `Accept`. */
  readonly accept?: string;
}

interface Request {
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
function requestOf({ method = 'GET', headers = {}, body, accept }: RequestOptions): Request {
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
function dispatchOptionsOf(url: URL, { method, headers, body }: Request, cookies: string): Dispatcher.RequestOptions {
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
function locationOf({ statusCode, headers }: Dispatcher.ResponseData): string | null {
  const { location } = headers;
  if (!REDIRECTS.has(statusCode) || location === undefined) return null;
  return Array.isArray(location) ? (location[0] ?? null) : location;
}

/** The request that follows a redirect, as browsers form it (Fetch standard, "HTTP-redirect fetch"). */
function redirected(request: Request, status: number, from: URL, to: URL): Request {
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
