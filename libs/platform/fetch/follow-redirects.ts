import { unlessAborted } from '#libs/platform/lifecycle/index.ts';

import type { CookieJar } from 'tough-cookie';
import type { Dispatcher } from 'undici';

import type { AllowedHost } from '#libs/platform/config/index.ts';

import { FetchError } from './fetch-error.ts';
import { dispatchOptionsOf, locationOf, redirected, requestOf, type RequestOptions } from './request.ts';
import { parseTarget } from './target.ts';

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
      dispatcher.request({ ...dispatchOptionsOf(url, request, sent), signal }),
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
