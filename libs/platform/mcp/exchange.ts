import type { EventSourceMessage } from 'eventsource-parser';
import { EventSourceParserStream } from 'eventsource-parser/stream';

import { isObject, parsedJson } from '#libs/kernel/json.ts';
import { FetchError, type FetchFailure } from '#libs/platform/fetch/index.ts';

import { quoted, refusalIn, sentenceOf, textOf } from './server-words.ts';
import { ToolServerError } from './tool-server-error.ts';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** How often an answer that breaks off is resumed. */
const MAX_RESUMES = 20;
/** Between two of them, whatever the server asks for. */
const MIN_RETRY_MS = 100;
const INTERNAL_ERROR = -32_603;
export const UNSUPPORTED_VERSION = -32_022;
/** A result that the library accepts in both eras of the protocol. What the server said is kept beside it. */
const ACCEPTED = { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools: [], content: [] };
/** Failures before a request was sent. */
const UNSENT: ReadonlySet<FetchFailure> = new Set([
  'invalid_url',
  'scheme_refused',
  'userinfo_refused',
  'port_refused',
  'address_refused',
  'name_not_found',
  'connect_failed',
  'tls_failed',
]);
/** Statuses of a request that may have been carried out, besides those of broken servers. */
const UNCERTAIN = new Set([408, 499]);

export interface ExchangeOptions {
  readonly fetch: Fetch;
  readonly token: string | null;
  /** Whether the server speaks the protocol of 2024, which sends all answers over one stream. */
  readonly hasOneStream: boolean;
  /** Called when an answer cannot come any longer: the library would wait for it until its time is up. */
  readonly onBroken: (error: Error) => void;
}

/**
 * The requests of one session, between the library and the network. The library refuses a whole answer for one member
 * that it does not expect, and a whole message for one that is null; so it gets messages of its own form, and the
 * results of tools are read from `answer`. What a server says unasked is left out, but for its requests.
 */
export class Exchange {
  readonly #options: ExchangeOptions;
  /** Requests without an answer, by their ids as texts: servers also return `"1"` for 1. */
  readonly #open = new Map<string, { readonly id: unknown; readonly method: string }>();
  #answer: unknown;
  #mayHaveCalled = false;
  #resumes = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  /** Whether a tool may have been called. */
  get mayHaveCalled(): boolean {
    return this.#mayHaveCalled;
  }

  /** The result of the latest request for tools, as the server sent it. */
  get answer(): unknown {
    return this.#answer;
  }

  readonly fetch: Fetch = async (url, init = {}) => {
    switch (init.method) {
      case 'POST':
        return this.#post(url, init);
      case 'DELETE':
        // Servers may keep their sessions, and say so in any way.
        await this.#options.fetch(url, init).catch(() => undefined);
        return new Response(null, { status: 204 });
      default:
        return this.#get(url, init);
    }
  };

  async #post(url: string | URL, init: RequestInit): Promise<Response> {
    const { id, method } = JSON.parse(String(init.body)) as { readonly id?: unknown; readonly method?: string };
    // A notification, or the answer to a request of the server, that is refused costs only itself.
    if (id === undefined || method === undefined)
      return this.#opened(url, init).then(emptied, () => new Response(null, { status: 202 }));
    this.#open.set(String(id), { id, method });
    const isCall = method === 'tools/call';
    this.#mayHaveCalled ||= isCall;
    try {
      const response = await this.#opened(url, init);
      if (this.#options.hasOneStream) return await emptied(response);
      return isStream(response) ? this.#streamOf(response, String(id)) : await this.#messagesOf(response, String(id));
    } catch (error) {
      if (isCall && isUnsent(error)) this.#mayHaveCalled = false;
      throw error;
    }
  }

  async #get(url: string | URL, init: RequestInit): Promise<Response> {
    const isResumed = new Headers(init.headers).has('last-event-id');
    // The stream of what a server says unasked: nothing of it is of interest.
    if (!isResumed && !this.#options.hasOneStream) return new Response(null, { status: 405 });
    try {
      if (isResumed && (this.#resumes += 1) > MAX_RESUMES) throw brokenOff();
      const response = await this.#opened(url, init);
      if (!isStream(response)) throw wrongType(response);
      return this.#streamOf(response, null);
    } catch (error) {
      this.#options.onBroken(error as Error);
      throw error;
    }
  }

  /** @throws ToolServerError for a status that is no success */
  async #opened(url: string | URL, init: RequestInit): Promise<Response> {
    const response = await this.#options.fetch(url, init);
    if (response.ok) return response;
    const { status, headers } = response;
    const body = await response.text();
    const refusal = refusalIn(status, headers.get('content-type') ?? '', body);
    // The library looks for another version in the answer.
    if (refusal.code === UNSUPPORTED_VERSION) return Response.json(parsedJson(body));
    throw new ToolServerError(sentenceOf(refusal, headers.get('www-authenticate'), this.#options.token), { refusal });
  }

  async #messagesOf(response: Response, id: string): Promise<Response> {
    const json = parsedJson(await response.text());
    if (json === undefined) throw isJson(response) ? notValid() : wrongType(response);
    const messages = [json].flat().flatMap((one) => this.#readable(one, id) ?? []);
    if (this.#open.has(id)) throw notValid();
    // A header names the session.
    const headers = new Headers(response.headers);
    headers.set('content-type', 'application/json');
    return new Response(JSON.stringify(messages), { headers });
  }

  /** @param id of the request that the stream answers; null: any of them */
  #streamOf({ body, status, headers }: Response, id: string | null): Response {
    let retryMs: number | null = null;
    const events = (body ?? new Blob([]).stream())
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream({ onRetry: (ms) => (retryMs = Math.max(ms, MIN_RETRY_MS)) }));
    const lines = async function* (this: Exchange): AsyncGenerator<Uint8Array> {
      const isOpen = () => (id === null ? this.#open.size > 0 : this.#open.has(id));
      let isResumable = false;
      try {
        for await (const event of events) {
          isResumable ||= Boolean(event.id) && !this.#options.hasOneStream;
          const retry = retryMs === null ? '' : `retry: ${retryMs}\n`;
          retryMs = null;
          yield Buffer.from(`${retry}${this.#eventOf(event, id)}\n`);
        }
      } catch (error) {
        const isCut = error instanceof FetchError && error.reason === 'disconnected';
        if (isOpen() && !(isCut && isResumable)) this.#options.onBroken(error as Error);
        throw error;
      }
      if (this.#options.hasOneStream || (isOpen() && !isResumable)) this.#options.onBroken(brokenOff());
    };
    const readable = ReadableStream.from(lines.call(this)) as ReadableStream<Uint8Array<ArrayBuffer>>;
    return new Response(readable, { status, headers });
  }

  #eventOf({ id, event, data }: EventSourceMessage, request: string | null): string {
    const head = id === undefined ? '' : `id: ${id}\n`;
    if (event === 'endpoint') return `${head}event: endpoint\ndata: ${data}\n`;
    const isMessage = event === undefined || event === 'message';
    const messages = isMessage ? [parsedJson(data)].flat().flatMap((one) => this.#readable(one, request) ?? []) : [];
    // An event that is no message costs only itself; its id is kept.
    if (messages.length === 0) return head === '' ? '' : `${head}data:\n`;
    return messages.map((one) => `${head}data: ${JSON.stringify(one)}\n`).join('\n');
  }

  /** The message in the library's form; null for one that is left out. @param request of a response without an id */
  #readable(message: unknown, request: string | null): object | null {
    if (!isObject(message)) return null;
    const { id, method, error, result } = message;
    if (typeof method === 'string') {
      const isRequest = typeof id === 'string' || Number.isInteger(id);
      // Without parameters: the library answers a ping, and refuses everything else.
      return isRequest ? { jsonrpc: '2.0', id, method } : null;
    }
    const key = (id === null || id === undefined) && isObject(error) ? request : String(id);
    const open = key === null ? undefined : this.#open.get(key);
    if (key === null || open === undefined || (!isObject(error) && result === undefined)) return null;
    this.#open.delete(key);
    const head = { jsonrpc: '2.0', id: open.id };
    return isObject(error)
      ? { ...head, error: errorOf(error) }
      : { ...head, result: this.#resultOf(open.method, result) };
  }

  #resultOf(method: string, result: unknown): object {
    switch (method) {
      case 'tools/list':
      case 'tools/call':
        if (isObject(result) && result.resultType === 'input_required') return result;
        this.#answer = result;
        return ACCEPTED;
      case 'initialize': {
        // Nothing but the version is used.
        const protocolVersion = isObject(result) ? (textOf(result.protocolVersion) ?? '') : '';
        return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'server', version: '1' } };
      }
      default:
        return isObject(result) ? result : {};
    }
  }
}

function errorOf({ code, message, data }: Readonly<Record<string, unknown>>): object {
  const known = Number.isSafeInteger(code) ? code : INTERNAL_ERROR;
  return { code: known, message: textOf(message) ?? '', ...(data !== undefined && { data }) };
}

/** Without its body, which says nothing that is needed. */
async function emptied({ body, headers }: Response): Promise<Response> {
  await body?.cancel().catch(() => undefined);
  return new Response(null, { status: 202, headers });
}

function isUnsent(error: unknown): boolean {
  if (error instanceof FetchError) return UNSENT.has(error.reason);
  const status = error instanceof ToolServerError ? (error.refusal?.status ?? 500) : 500;
  return status < 500 && !UNCERTAIN.has(status);
}

function isStream({ headers }: Response): boolean {
  return /^\s*text\/event-stream\b/i.test(headers.get('content-type') ?? '');
}

function isJson({ headers }: Response): boolean {
  return /[/+]json\b/i.test(headers.get('content-type') ?? '');
}

function brokenOff(): ToolServerError {
  return new ToolServerError('the tool server ended its answer before the result');
}

function notValid(): ToolServerError {
  return new ToolServerError('the tool server gave an answer that is not valid');
}

function wrongType({ headers }: Response): ToolServerError {
  const type = quoted(headers.get('content-type'), null);
  return new ToolServerError(
    `the tool server gave an answer that is not valid${type === '' ? '' : `, of the type${type}`}`,
  );
}
