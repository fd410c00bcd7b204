/** Requests to addresses that come from outside. */
export { FetchError } from './fetch-error.ts';
export type { FetchFailure } from './fetch-error.ts';
export { fetchLike } from './fetch-like.ts';
export { createFetcher, fetcherWith } from './fetcher.ts';
export type { Fetched, Fetcher, FetcherOptions, FetchOptions, OpenedResponse } from './fetcher.ts';
export { retryAfterMs } from './retry-after.ts';
