import { allowedHostOf } from '#libs/platform/config/index.ts';
import { createFetcher, fetchLike } from '#libs/platform/fetch/index.ts';
import type { FetcherOptions } from '#libs/platform/fetch/index.ts';

/** Requests under way; further ones wait. */
const CONNECTIONS = 256;

/** `fetch` for one endpoint. */
export interface EndpointFetch {
  readonly server: { readonly host: string; readonly port: number };
  readonly fetch: (url: string | URL | Request, init?: RequestInit) => Promise<Response>;
  close(): Promise<void>;
}

/**
 * A guarded fetcher for the endpoint that the operator has configured, in the form that libraries call. The host and port
 * of the endpoint may be private, without being named in `FETCH_ALLOW_HOSTS`: this fetcher requests nothing else, follows
 * no redirects, and is not used for addresses from outside.
 *
 * @param baseUrl a valid http or https URL
 */
export function endpointFetch(
  baseUrl: string,
  limits: { readonly maxBytes: number; readonly timeoutMs: number },
  options: Pick<FetcherOptions, 'metrics' | 'nameServers'>,
): EndpointFetch {
  const { origin, hostname, port, protocol } = new URL(baseUrl);
  const fetcher = createFetcher({
    ...options,
    allowHosts: [allowedHostOf(baseUrl)],
    connectionsPerOrigin: CONNECTIONS,
  });
  const fetchOf = fetchLike(fetcher, limits);
  return {
    server: { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) },
    fetch: async (url, init) => {
      const target = String(url);
      if (new URL(target).origin !== origin) throw new TypeError(`not a URL of the endpoint: ${target}`);
      return fetchOf(target, init);
    },
    close: () => fetcher.close(),
  };
}
