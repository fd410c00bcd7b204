import type { Client } from '@modelcontextprotocol/client';
import { LRUCache } from 'lru-cache';

import { VERSION } from '#libs/platform/config/index.ts';
import { type Fetcher, FetchError, fetchLike } from '#libs/platform/fetch/index.ts';
import { unlessAborted } from '#libs/platform/lifecycle/index.ts';

import { Exchange, UNSUPPORTED_VERSION } from './exchange.ts';
import { quoted } from './server-words.ts';
import { ToolServerError } from './tool-server-error.ts';

export interface ToolServerAccess {
  /** Of the endpoint. */
  readonly url: string;
  /** Sent as bearer token; null: none. */
  readonly token: string | null;
  /** Connections are shared within it: the id of the agent. Default: by all accesses without one. */
  readonly group?: string;
}

export interface ToolServerLimits {
  /** For all tools of a server, or for one call, with the start of its session. */
  readonly timeoutMs: number;
  /** Of one response. */
  readonly maxBytes: number;
  /** How a server is spoken to that is not known. Default: `initialized`, which servers of the other eras refuse at once. */
  readonly firstEra?: Era;
}

export interface Session {
  readonly client: Client;
  readonly exchange: Pick<Exchange, 'answer'>;
  readonly options: { readonly signal: AbortSignal; readonly timeout: number };
}

/**
 * How a server is spoken to: `initialized` by the versions of 2025, `stateless` by those since 2026, `streamed` by that of
 * 2024, with all answers in one stream of server-sent events.
 */
type Era = 'initialized' | 'stateless' | 'streamed';

const STATELESS_VERSION = '2026-07-28';
const MISSING_CAPABILITY = -32_021;
/** Codes of the library for results that ask for what only a user has. It follows those that ask for a repetition alone. */
const NEEDS_INPUT = new Set(['CAPABILITY_NOT_SUPPORTED', 'UNSUPPORTED_RESULT_TYPE', 'INPUT_REQUIRED_ROUNDS_EXCEEDED']);
/** Eras of servers by their URLs, except the one that is tried first anyway. */
const ERA_TTL_MS = 600_000;
const MAX_ERAS = 1_000;
/** Statuses with which a server of 2024 refuses a request. */
const WITHOUT_POST = new Set([400, 404, 405]);
/** For the request that ends a session, which servers need not answer. */
const MAX_END_MS = 1_000;
/** Pauses before an answer that broke off is resumed, unless the server says how long. */
const RESUMING = {
  maxRetries: 3,
  initialReconnectionDelay: 250,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 2,
};

/** Sessions with servers: one for each use, which ends it. */
export class Sessions {
  readonly #fetcher: Pick<Fetcher, 'open'>;
  readonly #limits: ToolServerLimits;
  readonly #firstEra: Era;
  readonly #eras = new LRUCache<string, Era>({ max: MAX_ERAS, ttl: ERA_TTL_MS });

  constructor(fetcher: Pick<Fetcher, 'open'>, limits: ToolServerLimits) {
    this.#fetcher = fetcher;
    this.#limits = limits;
    this.#firstEra = limits.firstEra ?? 'initialized';
  }

  /** @throws ToolServerError; the reason of `signal` */
  async use<T>(access: ToolServerAccess, signal: AbortSignal, use: (session: Session) => Promise<T>): Promise<T> {
    const late = AbortSignal.timeout(this.#limits.timeoutMs);
    const over = AbortSignal.any([signal, late]);
    const attempt = (era: Era) => this.#inEra(era, access, over, use);
    try {
      return await this.#inItsEra(attempt, this.#eras.get(access.url) ?? this.#firstEra);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ToolServerError) || !late.aborted) throw error;
      throw new ToolServerError('the tool server did not answer in time', { cause: error, stage: error.stage });
    }
  }

  async #inItsEra<T>(attempt: (era: Era) => Promise<T>, first: Era): Promise<T> {
    try {
      return await attempt(first);
    } catch (error) {
      const { stage = 'called', refusal = null } = error instanceof ToolServerError ? error : {};
      if (stage === 'called' || refusal === null) throw error;
      // A session may end between two requests, with its server or in a balancer: its tool was not called.
      if (stage === 'open' && refusal.status === 404) return attempt(first);
      const isStreamed = refusal.code === null && WITHOUT_POST.has(refusal.status ?? 0);
      if (stage === 'open' || (refusal.code === null && !isStreamed)) throw error;
      const other = first === 'initialized' ? (isStreamed ? 'streamed' : 'stateless') : 'initialized';
      return attempt(other).catch((second: unknown) => {
        // The first refusal says more of a server that speaks no era.
        throw second instanceof ToolServerError && second.stage === 'opening' ? error : second;
      });
    }
  }

  /** The library is loaded with the first session. */
  async #inEra<T>(
    era: Era,
    { url, token, group = '' }: ToolServerAccess,
    over: AbortSignal,
    use: (session: Session) => Promise<T>,
  ): Promise<T> {
    const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const broken = new AbortController();
    const onBroken = (error: Error) => broken.abort(error);
    const fetchOf = fetchLike(this.#fetcher, { ...this.#limits, group });
    const exchange = new Exchange({ fetch: fetchOf, token, hasOneStream: era === 'streamed', onBroken });
    const { fetch } = exchange;
    const requestInit = { headers: token === null ? {} : { authorization: `Bearer ${token}` } };
    const streamable = new StreamableHTTPClientTransport(new URL(url), {
      fetch,
      requestInit,
      reconnectionOptions: RESUMING,
    });
    const transport = era === 'streamed' ? new SSEClientTransport(new URL(url), { fetch, requestInit }) : streamable;
    const client = new Client(
      { name: 'Parley', version: VERSION },
      era === 'stateless' ? { versionNegotiation: { mode: { pin: STATELESS_VERSION } } } : {},
    );
    const ended = AbortSignal.any([over, broken.signal]);
    const options = { signal: ended, timeout: this.#limits.timeoutMs };
    let isOpen = false;
    try {
      await unlessAborted(client.connect(transport, options), ended);
      isOpen = true;
      if (era === this.#firstEra) this.#eras.delete(url);
      else this.#eras.set(url, era);
      return await unlessAborted(use({ client, exchange, options }), ended);
    } catch (error) {
      const stage = exchange.mayHaveCalled ? 'called' : isOpen ? 'open' : 'opening';
      throw errorOf(broken.signal.aborted ? broken.signal.reason : error, token, stage);
    } finally {
      await unlessAborted(streamable.terminateSession(), AbortSignal.timeout(MAX_END_MS)).catch(() => undefined);
      await client.close().catch(() => undefined);
    }
  }
}

/** @param error of the library, which wraps errors of the exchange */
function errorOf(error: unknown, token: string | null, stage: ToolServerError['stage']): ToolServerError {
  const options = { cause: error, stage };
  if (error instanceof ToolServerError)
    return new ToolServerError(error.message, { ...options, refusal: error.refusal });
  if (error instanceof FetchError) return new ToolServerError(sentenceOfFetch(error), options);
  if (!(error instanceof Error))
    return new ToolServerError('the tool server gave an answer that is not valid', options);
  // By name: the library is not loaded here.
  const code = 'code' in error ? error.code : null;
  if (typeof code === 'number') {
    const refusal = { status: null, code, words: error.message };
    const said = quoted(error.message, token);
    return new ToolServerError(`the tool server refused the request with the code ${code}${said}`, {
      ...options,
      refusal,
    });
  }
  if (typeof code === 'string' && NEEDS_INPUT.has(code)) {
    const refusal = { status: null, code: MISSING_CAPABILITY, words: null };
    const message = 'the tool server asks for the input of a user, which is not supported';
    return new ToolServerError(message, { ...options, refusal });
  }
  if (error.cause instanceof Error) return errorOf(error.cause, token, stage);
  const version = /^Server's protocol version is not supported: (.*)$/s.exec(error.message)?.[1];
  if (version !== undefined) {
    return new ToolServerError(
      `the tool server speaks a version of the protocol that is not supported${quoted(version, token)}`,
      { ...options, refusal: { status: null, code: UNSUPPORTED_VERSION, words: version } },
    );
  }
  return new ToolServerError('the tool server gave an answer that is not valid', options);
}

function sentenceOfFetch({ reason, url, message }: FetchError): string {
  return reason === 'too_many_redirects'
    ? `the tool server redirects requests, which is not followed${quoted(url, null)}`
    : message;
}
