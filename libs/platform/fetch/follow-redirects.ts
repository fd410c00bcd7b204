import { unlessAborted } from '#libs/platform/lifecycle/index.ts';

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
  let request = requestOf(options);
  let url = parseTarget(text, allowHosts);
  for (;;) {
    signal.throwIfAborted();
    route.push(url);
    requested.add(`${request.method} ${url.href}`);
    // By itself, an aborted request only ends when its connection is there.
    const response = await unlessAborted(dispatcher.request({ ...dispatchOptionsOf(url, request), signal }), signal);
    const location = locationOf(response);
    if (location === null) return response;
    response.body
      .dump({ limit: MAX_REDIRECT_BYTES, signal: AbortSignal.timeout(MAX_REDIRECT_BODY_MS) })
      .catch(() => undefined);
    const next = parseTarget(location, allowHosts, url);
    request = redirected(request, response.statusCode, url, next);
    if (requested.has(`${request.method} ${next.href}`)) {
      throw new FetchError('redirect_loop', next.href, 'the server redirects in a circle');
    }
    if (route.length > maxRedirects) {
      throw new FetchError('too_many_redirects', next.href, `the server redirects more than ${maxRedirects} times`);
    }
    await options.onRedirect?.(next.href, url.href);
    url = next;
  }
}
