/** The whole API with a worker, and calls for documents and their graphs. */
import { expect } from 'vitest';

import type { DomainEvent } from '#libs/kernel/event.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { startReactors } from '#services/worker/role.ts';

import { eventually } from './eventually.ts';
import type { TestPlatformOptions } from './platform.ts';
import { type Answer, type Call, startTestApi, type TestApi } from './test-api.ts';

export const DOCUMENTS = '/api/v1/documents';
const GRAPHS = '/api/v1/knowledge';

export interface LogEvent {
  readonly type: DomainEvent['type'];
  // Tests assert the shape that they expect.
  // eslint-disable-next-line typescript/no-explicit-any
  readonly data: any;
}

export class DocumentsApi {
  readonly api: TestApi;
  /** Key of another organization, with the scopes `read` and `write`. */
  readonly foreignKey: string;
  #worker: RunningRole | undefined;

  static async start({
    hasWorker = true,
    ...options
  }: TestPlatformOptions & { readonly hasWorker?: boolean } = {}): Promise<DocumentsApi> {
    const api = await startTestApi(options);
    const post = async (url: string, body: object) =>
      (await api.call({ method: 'POST', url, key: api.rootKey, body })).json;
    const { id: organization_id } = await post('/api/v1/organizations', { name: 'Other' });
    const user = await post('/api/v1/users', { organization_id });
    const principal = { type: 'user', id: user.id };
    const scopes = ['read', 'write'];
    const { key } = await post('/api/v1/keys', {
      name: 'other',
      scopes,
      access: 'organization',
      principal,
      organization_id,
    });
    const documents = new DocumentsApi(api, key);
    if (hasWorker) await documents.startWorker();
    return documents;
  }

  constructor(api: TestApi, foreignKey: string) {
    this.api = api;
    this.foreignKey = foreignKey;
  }

  async startWorker(): Promise<void> {
    const { features, stores } = this.api;
    const context = { platform: stores.platform, features, logChecked: Promise.resolve() };
    this.#worker = await startReactors(context, features.reactors);
  }

  async stopWorker(): Promise<void> {
    await this.#worker?.stop();
  }

  async stop(): Promise<void> {
    await this.stopWorker();
    await this.api.stop();
  }

  call(method: Call['method'], url: string, body?: object, headers = {}, key = this.api.rootKey): Promise<Answer> {
    return this.api.call({ method, url, key, headers, ...(body !== undefined && { body }) });
  }

  get(id: string, key?: string): Promise<Answer> {
    return this.call('GET', `${DOCUMENTS}/${id}`, undefined, {}, key);
  }

  upload(query: Record<string, string>, file: Uint8Array, contentType: string): Promise<Answer> {
    const url = `${DOCUMENTS}/uploads?${new URLSearchParams(query)}`;
    return this.call('POST', url, Buffer.from(file), { 'content-type': contentType });
  }

  async newGraph(key?: string): Promise<string> {
    const created = await this.call('POST', GRAPHS, { name: 'Library' }, {}, key);
    expect(created.status).toBe(200);
    return created.json.id;
  }

  /** @returns the id of the document */
  async newDocument(body: object): Promise<string> {
    const created = await this.call('POST', DOCUMENTS, body);
    expect(created.bytes).toContain('"id"');
    return created.json.id;
  }

  /** @returns the document once it is `Ready` or `Failed` */
  async settled(id: string): Promise<{ readonly status: string; readonly [field: string]: unknown }> {
    return eventually(async () => {
      const { json } = await this.get(id);
      expect(json.status).toMatch(/^(Ready|Failed)/);
      return json;
    });
  }

  /** Events of one stream, oldest first. */
  async events(stream: string): Promise<LogEvent[]> {
    const events: LogEvent[] = [];
    for await (const { type, data } of this.api.stores.platform.store.readStream(stream)) {
      events.push({ type: type as LogEvent['type'], data });
    }
    return events;
  }

  async types(stream: string): Promise<string[]> {
    return (await this.events(stream)).map(({ type }) => type);
  }
}
