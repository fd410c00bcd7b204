/**
 * HTTP client of the API on `node:http` instead of `fetch`: it neither normalises nor retries requests, so a test
 * sees the exact response.
 */
import { Agent, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /**
   * The parsed body.
   * @throws SyntaxError when it is not JSON
   */
  json(): unknown;
}

export interface RequestOptions {
  /** Sent as JSON. Strings and bytes are sent unchanged, with the same content type. */
  readonly body?: unknown;
  readonly headers?: OutgoingHttpHeaders;
  /** Milliseconds until the call fails. Default 10,000. */
  readonly timeoutMs?: number;
}

/** The call got no response; `sent` is false when it could not even connect. */
export class NoReplyError extends Error {
  override readonly name = 'NoReplyError';
  readonly sent: boolean;

  constructor(cause: unknown, sent: boolean) {
    super(`no reply: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.sent = sent;
  }
}

export class ApiClient {
  readonly baseUrl: string;
  readonly #apiKey: string | null;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  /** @param apiKey null to send no key */
  constructor(baseUrl: string, apiKey: string | null) {
    this.baseUrl = baseUrl;
    this.#apiKey = apiKey;
  }

  get = (path: string, options?: RequestOptions): Promise<Reply> => this.request('GET', path, options);
  post = (path: string, body?: unknown, options?: RequestOptions): Promise<Reply> =>
    this.request('POST', path, { ...options, body });
  patch = (path: string, body?: unknown, options?: RequestOptions): Promise<Reply> =>
    this.request('PATCH', path, { ...options, body });
  delete = (path: string, options?: RequestOptions): Promise<Reply> => this.request('DELETE', path, options);

  /** The same API with another key. */
  withKey(apiKey: string | null): ApiClient {
    return new ApiClient(this.baseUrl, apiKey);
  }

  /** @throws NoReplyError */
  request(method: string, path: string, { body, headers, timeoutMs = 10_000 }: RequestOptions = {}): Promise<Reply> {
    const { hostname, port } = new URL(this.baseUrl);
    const payload = payloadOf(body);
    return new Promise((resolve, reject) => {
      let sent = false;
      const fail = (error: unknown): void => reject(new NoReplyError(error, sent));
      const call = httpRequest({ hostname, port, path, method, agent: this.#agent });
      call.setTimeout(timeoutMs);
      if (this.#apiKey !== null) call.setHeader('authorization', `Bearer ${this.#apiKey}`);
      if (payload !== undefined) call.setHeader('content-type', 'application/json');
      for (const [name, value] of Object.entries(headers ?? {})) {
        if (value === undefined) call.removeHeader(name);
        else call.setHeader(name, value);
      }
      const late = setTimeout(() => call.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      call.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => (sent = true));
        else sent = true;
      });
      call.on('error', fail);
      call.on('close', () => clearTimeout(late));
      call.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', fail);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: () => JSON.parse(text) as unknown,
          });
        });
      });
      call.end(payload);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function payloadOf(body: unknown): string | Buffer | undefined {
  if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) return body;
  return JSON.stringify(body);
}
