/** An endpoint that turns texts into vectors, in the form of OpenAI's `POST /embeddings`. */
import { LRUCache } from 'lru-cache';

import { admitText } from '#libs/kernel/text.ts';
import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import type { Fetched, Fetcher } from '#libs/platform/fetch/index.ts';
import { backoffMs } from '#libs/platform/lifecycle/index.ts';

import { queryWords } from './tokens.ts';

/** Of a query, before the search is answered by words alone. */
const QUERY_TIMEOUT_MS = 800;
const BATCH_TIMEOUT_MS = 30_000;
const MAX_QUERY_BYTES = 256 * 1024;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
/** Queries whose vectors are asked for at a time; further ones are answered by words alone. */
const MAX_QUERIES = 32;
/** A query is cut: the length of a text that a person types. */
const MAX_QUERY_CHARACTERS = 2_000;
/** Vectors of queries that are kept. */
const MAX_REMEMBERED = 500;
/** Pauses after failures. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;

/** The endpoint refuses the texts as they are: too long, or of a kind that the model does not take. */
export class TextsRefused extends Error {
  override readonly name = 'TextsRefused';
}

/** The endpoint cannot be used at present. */
export class EndpointFailure extends Error {
  override readonly name = 'EndpointFailure';
  readonly retryAfterMs: number;

  constructor(message: string, { cause, retryAfterMs = 0 }: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

export interface EndpointOptions {
  readonly config: EmbeddingConfig;
  /** Allows the host of the endpoint, and should allow no other: its responses need no trust. */
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  /** Called with each request that ended. */
  onRequest(purpose: 'query' | 'facts', outcome: 'ok' | 'refused' | 'failed'): void;
}

/**
 * Guarantees: every vector has the length 1, and all of a reply have the same number of dimensions. After a failure, the
 * endpoint gets no request until a pause has passed, which doubles with each failure up to a minute.
 */
export class EmbeddingEndpoint {
  readonly #options: EndpointOptions;
  readonly #remembered = new LRUCache<string, Float32Array>({ max: MAX_REMEMBERED });
  #queries = 0;
  #failures = 0;
  /** Of `performance.now()`. */
  #pausedUntilMs = 0;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  /** Until requests are sent again; 0 for at once. */
  get pauseMs(): number {
    return Math.max(0, this.#pausedUntilMs - performance.now());
  }

  /** Null if there is none within 0.8 seconds, or for a query without words. Never rejects. */
  async ofQuery(query: string): Promise<Float32Array | null> {
    const text = textOf(query);
    const known = this.#remembered.get(text);
    if (known !== undefined) return known;
    if (this.pauseMs > 0 || this.#queries >= MAX_QUERIES || queryWords(text).length === 0) return null;
    this.#queries += 1;
    try {
      const [vector = null] = await this.#request('query', [text]);
      if (vector !== null) this.#remembered.set(text, vector);
      return vector;
    } catch {
      // Counted, and answered by words.
      return null;
    } finally {
      this.#queries -= 1;
    }
  }

  /** The vector of the query cannot be compared with others: it is asked for again the next time. */
  forget(query: string): void {
    this.#remembered.delete(textOf(query));
  }

  /** @returns one for each text @throws TextsRefused, EndpointFailure */
  ofTexts(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    return this.#request('facts', texts, signal);
  }

  async #request(purpose: 'query' | 'facts', texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> {
    const { config, onRequest } = this.#options;
    try {
      const vectors = vectorsOf(await this.#post(purpose, texts, signal), texts.length, config.dimensions);
      onRequest(purpose, 'ok');
      this.#failures = 0;
      return vectors;
    } catch (error) {
      if (error instanceof TextsRefused) {
        onRequest(purpose, 'refused');
        throw error;
      }
      if (signal?.aborted !== true) {
        onRequest(purpose, 'failed');
        this.#pause(error);
      }
      throw error instanceof EndpointFailure ? error : new EndpointFailure('the request failed', { cause: error });
    }
  }

  async #post(purpose: 'query' | 'facts', texts: readonly string[], signal?: AbortSignal): Promise<Uint8Array> {
    const { fetcher, config } = this.#options;
    const { baseUrl, apiKey, model, dimensions } = config;
    const isQuery = purpose === 'query';
    const response = await fetcher.fetch(`${baseUrl}/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }) },
      accept: 'application/json',
      body: JSON.stringify({
        model,
        input: texts,
        encoding_format: 'float',
        ...(dimensions !== null && { dimensions }),
      }),
      maxRedirects: 0,
      maxBytes: isQuery ? MAX_QUERY_BYTES : MAX_BATCH_BYTES,
      timeoutMs: isQuery ? QUERY_TIMEOUT_MS : BATCH_TIMEOUT_MS,
      ...(signal && { signal }),
    });
    if (response.status === 200) return response.body;
    if ([400, 413, 422].includes(response.status)) throw new TextsRefused(`status ${response.status}`);
    throw new EndpointFailure(`status ${response.status}`, { retryAfterMs: retryAfterMs(response) });
  }

  #pause(error: unknown): void {
    this.#failures += 1;
    const asked = error instanceof EndpointFailure ? error.retryAfterMs : 0;
    const pauseMs = Math.max(asked, backoffMs(this.#failures, { firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS }));
    this.#pausedUntilMs = performance.now() + Math.min(pauseMs, MAX_PAUSE_MS);
  }
}

function textOf(query: string): string {
  return admitText(query, MAX_QUERY_CHARACTERS).trim();
}

function retryAfterMs({ headers }: Fetched): number {
  const seconds = Number(headers.get('retry-after') ?? 0);
  return Number.isFinite(seconds) ? seconds * 1_000 : 0;
}

/** @param dimensions null: any number, the same for all @throws EndpointFailure for what is not a vector for each text */
export function vectorsOf(body: Uint8Array, count: number, dimensions: number | null): Float32Array[] {
  const data = dataOf(body);
  if (!Array.isArray(data) || data.length !== count)
    throw new EndpointFailure(`the reply does not have ${count} vectors`);
  const vectors: Float32Array[] = [];
  for (const [place, item] of data.entries()) {
    const { index = place, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown };
    if (typeof index !== 'number' || !(index in data) || vectors[index] !== undefined) {
      throw new EndpointFailure('the vectors of the reply are not numbered');
    }
    vectors[index] = unitVector(embedding);
  }
  const length = dimensions ?? vectors[0]?.length;
  if (vectors.some((vector) => vector.length !== length)) {
    throw new EndpointFailure(`the vectors of the reply do not all have ${length} dimensions`);
  }
  return vectors;
}

function dataOf(body: Uint8Array): unknown {
  try {
    const reply: unknown = JSON.parse(Buffer.from(body).toString());
    return typeof reply === 'object' && reply !== null && 'data' in reply ? reply.data : null;
  } catch (error) {
    throw new EndpointFailure('the reply is not JSON', { cause: error });
  }
}

const MAX_DIMENSIONS = 4_096;

function unitVector(numbers: unknown): Float32Array {
  if (!Array.isArray(numbers) || numbers.length === 0 || numbers.length > MAX_DIMENSIONS) {
    throw new EndpointFailure(`an embedding of the reply is not a list of 1 to ${MAX_DIMENSIONS} numbers`);
  }
  let squares = 0;
  for (const value of numbers as readonly unknown[]) {
    // Anything else adds NaN.
    squares += typeof value === 'number' ? value * value : Number.NaN;
  }
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length) || length === 0) throw new EndpointFailure('an embedding of the reply has no direction');
  return Float32Array.from(numbers as readonly number[], (value) => value / length);
}
