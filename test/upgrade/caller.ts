/** Requests of one API key. Unlike the client of other tests, any refusal is a fault. */
import { setTimeout as delay } from 'node:timers/promises';
import { asRecord } from '#test/support/log-reader.ts';

export type Body = Readonly<Record<string, unknown>> | Buffer;

export class Caller {
  readonly baseUrl: string;
  readonly key: string | null;

  constructor(baseUrl: string, key: string | null) {
    this.baseUrl = baseUrl;
    this.key = key;
  }

  withKey(key: string | null): Caller {
    return new Caller(this.baseUrl, key);
  }

  get = (path: string): Promise<Record<string, unknown>> => this.send('GET', path);
  post = (path: string, body: Body = {}, headers = {}): Promise<Record<string, unknown>> =>
    this.send('POST', path, body, headers);
  patch = (path: string, body: Body, headers = {}): Promise<Record<string, unknown>> =>
    this.send('PATCH', path, body, headers);
  put = (path: string, body: Body = {}): Promise<Record<string, unknown>> => this.send('PUT', path, body);
  delete = (path: string): Promise<Record<string, unknown>> => this.send('DELETE', path);

  /** @returns the id of what the request has created */
  async create(path: string, body: Body = {}, headers = {}): Promise<string> {
    return String((await this.post(path, body, headers))['id']);
  }

  /** @throws if the answer is no success; a store that is not caught up yet is asked again */
  async send(method: string, path: string, body?: Body, headers = {}): Promise<Record<string, unknown>> {
    for (let attempt = 0; ; attempt += 1) {
      const response = await this.fetch(method, path, body, headers);
      const text = await response.text();
      if (response.ok) return text.startsWith('{') ? asRecord(JSON.parse(text)) : {};
      if (response.status !== 503 || attempt === 20) {
        throw new Error(`${method} ${path}: ${response.status} ${text} (${JSON.stringify(body)?.slice(0, 500)})`);
      }
      await delay(500);
    }
  }

  fetch(method: string, path: string, body?: Body, headers = {}): Promise<Response> {
    const type = Buffer.isBuffer(body) ? {} : { 'content-type': 'application/json' };
    const content = Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body);
    return fetch(this.baseUrl + path, {
      method,
      headers: {
        ...(this.key !== null && { authorization: `Bearer ${this.key}` }),
        // Errors quote it.
        'x-request-id': 'upgrade',
        ...(body !== undefined && type),
        ...headers,
      },
      ...(content !== undefined && { body: content }),
    });
  }
}

/** The entries of a list. */
export function itemsOf(page: Record<string, unknown>): Record<string, unknown>[] {
  const { items } = page;
  return Array.isArray(items) ? items.map(asRecord) : [];
}
