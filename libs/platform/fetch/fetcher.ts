import type { Readable } from 'node:stream';

import type { Dispatcher } from 'undici';

import type { AllowedHost } from '#libs/platform/config/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';

import { type BodyRules, decodedBody, isTooLong, tooLarge } from './body.ts';
import type { GroupedDispatchers } from './dispatcher.ts';
import { FetchError, fetchErrorOf, TransferError } from './fetch-error.ts';
import { followRedirects, type RedirectOptions } from './follow-redirects.ts';
import { resolverOf, systemResolver } from './resolver.ts';
import { isAllowedUrl, parseTarget } from './target.ts';

const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;

export interface FetchOptions extends RedirectOptions {
  /** Of the decoded body. Default: 10 MiB. */
  readonly maxBytes?: number;
  /** From the call to the end of the body, with all redirects. Default: 30,000. */
  readonly timeoutMs?: number;
  /**
   * Connections are shared within a group only, so that one that waits for a server delays no other. For work of an
   * organization: its id. Default: the group of the process itself.
   */
  readonly group?: string;
  /** On average of ten seconds, while the reader waits; a slower server ends the fetch as `too_slow`. Default: any. */
  readonly leastBytesPerSecond?: number;
  /** Ends the fetch, which rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

export interface ResponseHead {
  readonly status: number;
  /** Of this response: the last one of `redirects`, if there are any. Without a fragment. */
  readonly url: string;
  /** URLs that were redirected to, in order. */
  readonly redirects: readonly string[];
  /** Names in lower case; several values of one header are joined with a comma. Without `set-cookie`. */
  readonly headers: ReadonlyMap<string, string>;
  readonly contentType: string | null;
}

export interface Fetched extends ResponseHead {
  /** Decoded. */
  readonly body: Uint8Array;
}

export interface OpenedResponse extends ResponseHead {
  /** Decoded; fails with a FetchError. Read it to its end or destroy it: it holds a connection until the deadline. */
  readonly body: Readable;
}

/**
 * The only path for requests to addresses that come from outside: pages, media, webhooks, tools. Guarantees: only public
 * addresses, and hosts that `FETCH_ALLOW_HOSTS` names, get a packet, also after redirects and whatever name servers
 * answer; time and memory are bounded. A GET or HEAD whose connection closes before the answer is sent once more. Does not:
 * keep cookies, use a proxy, retry otherwise, read robots.txt.
 */
export interface Fetcher {
  /** The URL as it will be requested, without its fragment. @throws FetchError for what its text alone forbids */
  check(url: string): URL;
  /** Whether `FETCH_ALLOW_HOSTS` names the host of a valid URL. */
  isAllowedHost(url: string): boolean;
  /** Any status is a result. @throws FetchError; the reason of `signal` */
  fetch(url: string, options?: FetchOptions): Promise<Fetched>;
  /** Resolves with the head of the response. @throws as `fetch` */
  open(url: string, options?: FetchOptions): Promise<OpenedResponse>;
  /** Ends all fetches. */
  close(): Promise<void>;
}

export interface FetcherOptions {
  readonly metrics: Pick<Metrics, 'counter'>;
  /** Hosts that may have private addresses and other ports. Default: none. */
  readonly allowHosts?: readonly AllowedHost[] | undefined;
  /** `address` or `address:port`. Default: the system's resolver, with its hosts file. */
  readonly nameServers?: readonly string[] | undefined;
  /** Connections of a group to one scheme, host and port; further requests wait. Default: 8. */
  readonly connectionsPerOrigin?: number;
  /** Over which `leastBytesPerSecond` is measured. Default: 10,000. */
  readonly rateWindowMs?: number;
}

export function createFetcher(options: FetcherOptions): Fetcher {
  const { metrics, allowHosts = [], nameServers, connectionsPerOrigin, rateWindowMs } = options;
  const rules = { allowHosts, resolve: nameServers === undefined ? systemResolver() : resolverOf(nameServers) };
  let dispatchers: Promise<GroupedDispatchers> | undefined;
  /** Loaded with the first request: undici takes long to load, and most processes request nothing. */
  const dispatcherOf = async (group: string): Promise<Dispatcher> => {
    dispatchers ??= import('./dispatcher.ts').then(
      ({ GroupedDispatchers }) => new GroupedDispatchers(rules, connectionsPerOrigin),
    );
    return (await dispatchers).of(group);
  };
  const closing = new AbortController();
  const startRecord = recorder(metrics);

  async function open(text: string, options: FetchOptions = {}): Promise<OpenedResponse> {
    const { maxBytes = DEFAULT_MAX_BYTES, timeoutMs = DEFAULT_TIMEOUT_MS, group = '', leastBytesPerSecond } = options;
    const deadline = startDeadline(timeoutMs);
    const record = startRecord();
    const signals = [deadline.signal, closing.signal, options.signal].filter((signal) => signal !== undefined);
    const route: URL[] = [];
    const errorOf = (error: Error): Error => fetchErrorOf(error, route.at(-1)?.href ?? text);
    const onEnd = (bytes: number, error: unknown): void => {
      deadline.clear();
      record(bytes, error);
    };
    try {
      const exchange = { dispatcher: await dispatcherOf(group), allowHosts, route, signal: AbortSignal.any(signals) };
      const response = await followRedirects(text, options, exchange);
      const body = await bodyOf(response, options.method === 'HEAD', {
        maxBytes,
        leastBytesPerSecond,
        rateWindowMs,
        errorOf,
        onEnd,
      });
      return { ...headOf(response, route), body };
    } catch (error) {
      const failure = error instanceof Error ? errorOf(error) : error;
      onEnd(0, failure);
      throw failure;
    }
  }

  return {
    check: (url) => parseTarget(url, allowHosts),
    isAllowedHost: (url) => isAllowedUrl(allowHosts, new URL(url)),
    open,
    async fetch(url, options) {
      const { body, ...head } = await open(url, options);
      const chunks = (await body.toArray()) as Buffer[];
      return { ...head, body: Buffer.concat(chunks) };
    },
    async close() {
      closing.abort(new TransferError('disconnected', 'the process stops'));
      await (await dispatchers)?.destroy();
    },
  };
}

function startDeadline(timeoutMs: number): { readonly signal: AbortSignal; clear(): void } {
  const deadline = new AbortController();
  const timer = setTimeout(() => {
    deadline.abort(new TransferError('timeout', `the response was not complete after ${timeoutMs / 1_000} s`));
  }, timeoutMs);
  return { signal: deadline.signal, clear: () => clearTimeout(timer) };
}

function headOf({ statusCode, headers: given }: Dispatcher.ResponseData, route: readonly URL[]): ResponseHead {
  const [first = '', ...redirects] = route.map(({ href }) => href);
  const headers = new Map(
    Object.entries(given)
      .filter(([name]) => name !== 'set-cookie')
      .map(([name, value]) => [name.toLowerCase(), Array.isArray(value) ? value.join(', ') : (value ?? '')]),
  );
  return {
    status: statusCode,
    url: redirects.at(-1) ?? first,
    redirects,
    headers,
    contentType: headers.get('content-type') ?? null,
  };
}

async function bodyOf(
  { body, headers }: Dispatcher.ResponseData,
  isHead: boolean,
  rules: BodyRules,
): Promise<Readable> {
  try {
    if (!isHead && isTooLong(String(headers['content-length']), rules.maxBytes)) throw tooLarge(rules.maxBytes);
    return await decodedBody(body, String(headers['content-encoding'] ?? ''), rules);
  } catch (error) {
    body.on('error', () => undefined).destroy();
    throw error;
  }
}

/** @param error null for a complete response */
type RecordEnd = (bytes: number, error: unknown) => void;

/** Counts fetches by outcome: `ok`, the reason of the failure, or `aborted`. */
function recorder(metrics: FetcherOptions['metrics']): () => RecordEnd {
  const fetches = metrics.counter('fetches_total', 'Outbound fetches by outcome', ['outcome']);
  const seconds = metrics.counter('fetch_seconds_total', 'Duration of outbound fetches, by outcome', ['outcome']);
  const received = metrics.counter('fetched_bytes_total', 'Decoded bytes in the bodies of outbound fetches');
  return () => {
    const startedAt = performance.now();
    return (bytes, error) => {
      const outcome = error === null ? 'ok' : error instanceof FetchError ? error.reason : 'aborted';
      fetches.add({ outcome });
      seconds.add({ outcome }, (performance.now() - startedAt) / 1_000);
      received.add({}, bytes);
    };
  };
}

/** A fetcher for the work of one organization: with its group, and other options that all of its requests have. */
export function fetcherWith<Used extends Pick<Fetcher, 'open'>>(fetcher: Used, common: FetchOptions): Used {
  const { open, fetch } = fetcher as unknown as Fetcher;
  return {
    ...fetcher,
    open: (url: string, options?: FetchOptions) => open(url, { ...common, ...options }),
    fetch: (url: string, options?: FetchOptions) => fetch(url, { ...common, ...options }),
  };
}
