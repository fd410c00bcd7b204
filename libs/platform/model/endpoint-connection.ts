import { allowedHostOf } from '#libs/platform/config/index.ts';
import {
  createFetcher,
  type FetcherOptions,
  type FetchOptions,
  type OpenedResponse,
} from '#libs/platform/fetch/index.ts';

/** Requests under way; further ones wait. */
const CONNECTIONS = 256;

export interface EndpointConnection {
  readonly server: { readonly host: string; readonly port: number };
  /** @param path below the base URL @throws FetchError; the reason of `signal` */
  post(path: string, options: FetchOptions): Promise<OpenedResponse>;
  close(): Promise<void>;
}

/**
 * A guarded fetcher for the endpoint that the operator has configured. The host and port of the endpoint may be private,
 * without being named in `FETCH_ALLOW_HOSTS`: this fetcher requests nothing else, follows no redirects, and is not used
 * for addresses from outside.
 *
 * @param baseUrl a valid http or https URL
 */
export function endpointConnection(
  baseUrl: string,
  options: Pick<FetcherOptions, 'metrics' | 'nameServers'>,
): EndpointConnection {
  const { hostname, port, protocol } = new URL(baseUrl);
  const root = baseUrl.replace(/\/+$/, '');
  const fetcher = createFetcher({
    ...options,
    allowHosts: [allowedHostOf(baseUrl)],
    connectionsPerOrigin: CONNECTIONS,
  });
  return {
    server: { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) },
    post: (path, given) => fetcher.open(`${root}${path}`, { ...given, method: 'POST', maxRedirects: 0 }),
    close: () => fetcher.close(),
  };
}
