import { type Fetcher, FetchError } from '#libs/platform/fetch/index.ts';

import { invalid } from './errors.ts';

/**
 * The one rule for URLs of requests that Parley will fetch or post to later: what the fetcher refuses by the text of a URL
 * alone is refused where the URL is set.
 *
 * @param at the place in the request
 * @returns the URL as it will be requested, without its fragment
 * @throws ValidationFailure 422
 */
export function requireFetchable(fetcher: Pick<Fetcher, 'check'>, url: string, at: readonly (string | number)[]): URL {
  try {
    return fetcher.check(url);
  } catch (error) {
    if (error instanceof FetchError) throw invalid(at, error.message, url);
    throw error;
  }
}

/**
 * The same for the URL of an endpoint. A page or a file may be named with a fragment, as browsers show it; an endpoint
 * with one cannot be meant, as it is never sent.
 */
export function requireEndpoint(fetcher: Pick<Fetcher, 'check'>, url: string, at: readonly (string | number)[]): void {
  requireFetchable(fetcher, url, at);
  if (url.includes('#')) throw invalid(at, 'the URL has a fragment (#), which is never sent', url);
}
