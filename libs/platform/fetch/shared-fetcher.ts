import type { Fetcher, FetchOptions } from './fetcher.ts';

/** A fetcher for the work of one organization: with its group, and other options that all of its requests have. */
export function fetcherWith<Used extends Pick<Fetcher, 'open'>>(fetcher: Used, common: FetchOptions): Used {
  const { open, fetch } = fetcher as unknown as Fetcher;
  return {
    ...fetcher,
    open: (url: string, options?: FetchOptions) => open(url, { ...common, ...options }),
    fetch: (url: string, options?: FetchOptions) => fetch(url, { ...common, ...options }),
  };
}
