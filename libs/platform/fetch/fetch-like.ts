import { Readable } from 'node:stream';

import type { Fetcher, FetchOptions } from './fetcher.ts';

/** Headers that do not hold for the decoded body. */
const DECODED = new Set(['content-encoding', 'content-length']);
/** Statuses that a `Response` with a body cannot have. */
const WITHOUT_BODY = new Set([204, 205, 304]);

/**
 * A fetcher in the form that libraries call: the standard's `fetch`, of which it honours method, headers, a text as body,
 * and the signal. Follows no redirects. Rejects as the fetcher does.
 */
export function fetchLike(
  fetcher: Pick<Fetcher, 'open'>,
  limits: Pick<FetchOptions, 'group'> & { readonly maxBytes: number; readonly timeoutMs: number },
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return (url, init = {}) => responseOf(fetcher, String(url), init, limits);
}

async function responseOf(
  fetcher: Pick<Fetcher, 'open'>,
  url: string,
  { method = 'GET', headers, body, signal }: RequestInit,
  limits: Pick<FetchOptions, 'maxBytes' | 'timeoutMs' | 'group'>,
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
