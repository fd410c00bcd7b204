/** An endpoint that turns texts into vectors, in the form of OpenAI's `POST /embeddings`. */
import { LRUCache } from 'lru-cache';
import type { EntityId } from '#libs/kernel/ids.ts';
import { parsedJson } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import { type Fetched, type Fetcher, FetchError, retryAfterMs } from '#libs/platform/fetch/index.ts';
import { backoffMs, within } from '#libs/platform/lifecycle/index.ts';
import { sentenceOf } from '#libs/platform/model/index.ts';
import { queryWords } from '#libs/platform/textindex/index.ts';

/** How long a search waits for the vector of its query. The request is not cancelled then: an endpoint may have to load the model first. */
const QUERY_WAIT_MS = 800;
const TIMEOUT_MS = 30_000;
const MAX_QUERY_BYTES = 256 * 1024;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
/** Queries whose vectors are asked for at a time; further ones are answered by words alone. */
const MAX_QUERIES = 32;
/** A query is cut: the length of a text that a person types. */
const MAX_QUERY_CHARACTERS = 2_000;
/** Vectors of queries that are kept, and graphs whose failures are remembered. */
const MAX_REMEMBERED = 500;
const MAX_PAUSES = 10_000;
/** Pauses after failures. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** Of the sentence of an endpoint. */
const MAX_SENTENCE = 300;
/** Any model takes this text. */
const PROBE = 'A sentence.';
/** Refusals that name a parameter: what it is called, and what they call it. */
const OPTIONAL = [
  ['encoding_format', /encoding[\s_-]*format|base64/i],
  ['dimensions', /\bdimensions?\b|matryoshka/i],
] as const;
type Optional = (typeof OPTIONAL)[number][0];
/** Fetches that never reached the endpoint. */
const UNREACHABLE: ReadonlySet<string> = new Set(['connect_failed', 'name_not_found', 'tls_failed']);

/** The endpoint has given no vectors: its own sentence, without secrets. */
export class EndpointFailure extends Error {
  override readonly name = 'EndpointFailure';
  /** It refuses the texts as they are: too long, or of a kind that the model does not take. */
  readonly isRefusal: boolean;
  readonly retryAfterMs: number;

  constructor(message: string, more: { cause?: unknown; isRefusal?: boolean; retryAfterMs?: number } = {}) {
    super(message, { cause: more.cause });
    this.isRefusal = more.isRefusal ?? false;
    this.retryAfterMs = more.retryAfterMs ?? 0;
  }
}

export interface EndpointOptions {
  readonly config: EmbeddingConfig;
  /** Allows the host of the endpoint, and should allow no other: its responses need no trust. */
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  /** Called with each request that ended. */
  onRequest(purpose: 'query' | 'facts', outcome: 'ok' | 'refused' | 'failed', failure?: EndpointFailure): void;
}

interface Pause {
  readonly failures: number;
  /** Of `performance.now()`. */
  readonly untilMs: number;
}

/** The pause of all graphs, after a failure to reach the endpoint. */
const ALL = '';

/**
 * Guarantees: every vector has the length 1, and all of a reply have the same number of dimensions. After a failure,
 * requests for the graph pause for a time that doubles with each failure up to a minute; those for other graphs only if
 * the endpoint cannot be reached.
 */
export class EmbeddingEndpoint {
  readonly #options: EndpointOptions;
  readonly #remembered = new LRUCache<string, Float32Array>({ max: MAX_REMEMBERED });
  readonly #underWay = new Map<string, Promise<Float32Array | null>>();
  readonly #pauses = recentlyUsed<string, Pause>(MAX_PAUSES);
  /** Parameters that the endpoint has refused. */
  readonly #leftOut = new Set<Optional>();

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  /** Until requests for the graph are sent again; 0 for at once. */
  pauseMs(graphId: EntityId): number {
    const until = Math.max(this.#pauses.get(graphId)?.untilMs ?? 0, this.#pauses.get(ALL)?.untilMs ?? 0);
    return Math.max(0, until - performance.now());
  }

  /** Null if there is none within 0.8 seconds, or for a query without words. Never rejects. */
  async ofQuery(graphId: EntityId, query: string): Promise<Float32Array | null> {
    const text = textOf(query);
    const known = this.#remembered.get(text);
    if (known !== undefined) return known;
    if (queryWords(text).length === 0) return null;
    let asked = this.#underWay.get(text);
    if (asked === undefined) {
      if (this.pauseMs(graphId) > 0 || this.#underWay.size >= MAX_QUERIES) return null;
      asked = this.#askFor(graphId, text);
      this.#underWay.set(text, asked);
    }
    return within(QUERY_WAIT_MS, asked, () => new Error('no vector in time')).catch(() => null);
  }

  async #askFor(graphId: EntityId, text: string): Promise<Float32Array | null> {
    try {
      const [vector = null] = await this.#request('query', [this.#options.config.queryPrefix + text]);
      if (vector !== null) this.#remembered.set(text, vector);
      this.succeeded(graphId);
      return vector;
    } catch (error) {
      // Counted, and answered by words. Another query may be accepted at once.
      if (!(error instanceof EndpointFailure && error.isRefusal)) this.failed(graphId, error);
      return null;
    } finally {
      this.#underWay.delete(text);
    }
  }

  /** The vector of the query cannot be compared with others: it is asked for again the next time. */
  forget(query: string): void {
    this.#remembered.delete(textOf(query));
  }

  /** @returns one for each text, null for one without a usable vector; at least one has one @throws EndpointFailure */
  ofTexts(texts: readonly string[], signal: AbortSignal): Promise<(Float32Array | null)[]> {
    const { passagePrefix } = this.#options.config;
    const prefixed = texts.map((text) => passagePrefix + text);
    return this.#request('facts', prefixed, signal);
  }

  /** Whether the endpoint gives a vector for a plain sentence at present. */
  async works(signal: AbortSignal): Promise<boolean> {
    const vectors = await this.ofTexts([PROBE], signal).catch(() => null);
    return vectors !== null;
  }

  /** Requests for the graph pause; for all graphs, if the endpoint could not be reached. */
  failed(graphId: EntityId, error: unknown): void {
    const cause = error instanceof EndpointFailure ? error.cause : null;
    const scope = cause instanceof FetchError && UNREACHABLE.has(cause.reason) ? ALL : graphId;
    const failures = (this.#pauses.get(scope)?.failures ?? 0) + 1;
    const asked = error instanceof EndpointFailure ? error.retryAfterMs : 0;
    const pauseMs = Math.max(asked, backoffMs(failures, { firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS }));
    this.#pauses.set(scope, { failures, untilMs: performance.now() + Math.min(pauseMs, MAX_PAUSE_MS) });
  }

  succeeded(graphId: EntityId): void {
    this.#pauses.delete(graphId);
    this.#pauses.delete(ALL);
  }

  async #request(
    purpose: 'query' | 'facts',
    texts: readonly string[],
    signal?: AbortSignal,
  ): Promise<(Float32Array | null)[]> {
    const { onRequest } = this.#options;
    try {
      const vectors = vectorsIn(await this.#post(purpose, texts, signal), texts.length);
      if (vectors.every((vector) => vector === null)) {
        throw new EndpointFailure('the reply has no vector that has a direction', { isRefusal: true });
      }
      onRequest(purpose, 'ok');
      return vectors;
    } catch (error) {
      const failure = error instanceof EndpointFailure ? error : new EndpointFailure(String(error), { cause: error });
      if (signal?.aborted !== true) onRequest(purpose, failure.isRefusal ? 'refused' : 'failed', failure);
      throw failure;
    }
  }

  /** Sends the request again without a parameter that the endpoint refuses by its name. */
  async #post(purpose: 'query' | 'facts', texts: readonly string[], signal?: AbortSignal): Promise<Uint8Array> {
    for (;;) {
      const sent = this.#parameters();
      const response = await this.#send(purpose, { ...sent, input: texts }, signal);
      if (response.status === 200) return response.body;
      const sentence = this.#sentenceOf(response);
      const refused = OPTIONAL.filter(([name, called]) => name in sent && called.test(sentence));
      if (refused.length === 0 || [401, 403, 429].includes(response.status)) {
        throw new EndpointFailure(`status ${response.status}: ${sentence}`, {
          isRefusal: [400, 413, 422].includes(response.status),
          retryAfterMs: retryAfterMs(response.headers) ?? 0,
        });
      }
      for (const [name] of refused) this.#leftOut.add(name);
    }
  }

  #parameters(): Record<string, unknown> {
    const { model, dimensions } = this.#options.config;
    const optional: Record<Optional, unknown> = { encoding_format: 'float', dimensions };
    const sent = Object.entries(optional).filter(
      ([name, value]) => value !== null && !this.#leftOut.has(name as Optional),
    );
    return { model, ...Object.fromEntries(sent) };
  }

  #send(purpose: 'query' | 'facts', body: object, signal?: AbortSignal): Promise<Fetched> {
    const { fetcher, config } = this.#options;
    const { baseUrl, apiKey } = config;
    return fetcher.fetch(`${baseUrl}/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }) },
      accept: 'application/json',
      body: JSON.stringify(body),
      maxRedirects: 0,
      maxBytes: purpose === 'query' ? MAX_QUERY_BYTES : MAX_BATCH_BYTES,
      timeoutMs: TIMEOUT_MS,
      ...(signal && { signal }),
    });
  }

  #sentenceOf({ body }: Fetched): string {
    const text = Buffer.from(body).toString();
    const sentence = sentenceOf({ body: parsedJson(text) ?? text, message: text }).replace(/\s+/g, ' ');
    const { apiKey } = this.#options.config;
    const safe = apiKey === null || apiKey === '' ? sentence : sentence.replaceAll(apiKey, '[redacted]');
    return admitText(safe.replace(/\b(?:Bearer\s+\S+|sk-[\w-]{6,})/g, '[redacted]'), MAX_SENTENCE);
  }
}

function textOf(query: string): string {
  return admitText(query, MAX_QUERY_CHARACTERS).trim();
}

/** Reads the replies of embedding endpoints, as they are rather than as they should be. */

const MAX_DIMENSIONS = 4_096;

/** The reply as a whole is no answer to the request. */
class UnreadableReply extends Error {
  override readonly name = 'UnreadableReply';
}

/**
 * One vector of length 1 for each text; null for a text that the reply has no usable vector for: none, an empty one, one
 * of zeros, or with what is no number.
 *
 * @throws UnreadableReply also if the vectors differ in their number of dimensions
 */
function vectorsIn(body: Uint8Array, count: number): (Float32Array | null)[] {
  const data = dataOf(body);
  if (!Array.isArray(data)) throw new UnreadableReply('the reply has no list of vectors');
  const vectors = Array.from({ length: count }, (): Float32Array | null => null);
  const isNumbered = data.every((item) => typeof Reflect.get(Object(item), 'index') === 'number');
  if (!isNumbered && data.length !== count) throw new UnreadableReply(`the reply does not have ${count} vectors`);
  const given = new Set<number>();
  for (const [place, item] of data.entries()) {
    const { index = place, embedding } = Object(item) as { index?: unknown; embedding?: unknown };
    const at = isNumbered ? Number(index) : place;
    if (!(at in vectors) || given.has(at)) throw new UnreadableReply('the vectors of the reply are not numbered');
    given.add(at);
    vectors[at] = unitVector(embedding);
  }
  const usable = vectors.filter((vector) => vector !== null);
  if (usable.some(({ length }) => length !== usable[0]?.length)) {
    throw new UnreadableReply('the vectors of the reply differ in their number of dimensions');
  }
  return vectors;
}

function dataOf(body: Uint8Array): unknown {
  try {
    const reply: unknown = JSON.parse(Buffer.from(body).toString());
    return typeof reply === 'object' && reply !== null && 'data' in reply ? reply.data : null;
  } catch (error) {
    throw new UnreadableReply('the reply is not JSON', { cause: error });
  }
}

function unitVector(embedding: unknown): Float32Array | null {
  const numbers = typeof embedding === 'string' ? floatsOf(embedding) : embedding;
  const isList = Array.isArray(numbers) || numbers instanceof Float32Array;
  if (!isList || numbers.length === 0 || numbers.length > MAX_DIMENSIONS) return null;
  let squares = 0;
  // Anything else than a number adds NaN.
  for (const value of numbers as readonly unknown[]) squares += typeof value === 'number' ? value * value : Number.NaN;
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length) || length === 0) return null;
  return Float32Array.from(numbers as readonly number[], (value) => value / length);
}

/** Of `encoding_format` `base64`: 32-bit floats, the lowest byte first. Some endpoints send them unasked. */
function floatsOf(base64: string): Float32Array | null {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0) return null;
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}
