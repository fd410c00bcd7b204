import { Readable } from 'node:stream';

import { allowedHostOf } from '#libs/platform/config/index.ts';
import { createFetcher } from '#libs/platform/fetch/index.ts';
import type { Fetcher, FetcherOptions } from '#libs/platform/fetch/index.ts';

/** Requests under way; further ones wait. */
const CONNECTIONS = 256;

/** Headers that do not hold for the decoded body. */
const DECODED = new Set(['content-encoding', 'content-length']);
/** Statuses that a `Response` with a body cannot have. */
const WITHOUT_BODY = new Set([204, 205, 304]);

/** `fetch` for one endpoint. */
export interface EndpointFetch {
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
  const { origin } = new URL(baseUrl);
  const fetcher = createFetcher({
    ...options,
    allowHosts: [allowedHostOf(baseUrl)],
    connectionsPerOrigin: CONNECTIONS,
  });
  return {
    fetch: async (url, init = {}) => {
      const target = String(url);
      if (new URL(target).origin !== origin) throw new TypeError(`not a URL of the endpoint: ${target}`);
      return responseOf(fetcher, target, init, limits);
    },
    close: () => fetcher.close(),
  };
}

async function responseOf(
  fetcher: Fetcher,
  url: string,
  { method = 'GET', headers, body, signal }: RequestInit,
  limits: { readonly maxBytes: number; readonly timeoutMs: number },
): Promise<Response> {
  // The fetcher names itself.
  const given = [...new Headers(headers)].filter(([name]) => name !== 'user-agent');
  const opened = await fetcher.open(url, {
    ...limits,
    method,
    headers: Object.fromEntries(given),
    maxRedirects: 0,
    ...(typeof body === 'string' && { body }),
    ...(signal && { signal }),
  });
  const head = { status: opened.status, headers: [...opened.headers].filter(([name]) => !DECODED.has(name)) };
  if (!WITHOUT_BODY.has(opened.status))
    return new Response(Readable.toWeb(opened.body) as ReadableStream<Uint8Array>, head);
  opened.body.destroy();
  return new Response(null, head);
}
