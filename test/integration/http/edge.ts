/** A server with a few routes of no category, which tests the HTTP layer alone: over real sockets, with real keys. */
import { z } from 'zod';
import { streamRevision } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import {
  buildHttpServer,
  commandContext,
  conflict,
  createApiKey,
  digestOf,
  etagOf,
  type HttpApp,
  type HttpServer,
  type HttpServerOptions,
  idParam,
  jsonMap,
  notFound,
  notModified,
  openPage,
  pageMetaSchema,
  pageQuery,
  type Principal,
  queryBoolean,
  sendJson,
  sendPage,
  setPosition,
  text,
} from '#libs/platform/http/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';

export interface Edge {
  readonly url: string;
  readonly server: HttpServer;
  /** Keys of two organizations with all scopes, and one read-only key of the first. */
  readonly keys: { readonly first: string; readonly second: string; readonly reader: string };
  /** Ids of the commands that were run. */
  readonly commands: string[];
  /** A request with the first organization's key, unless the headers name another. */
  call(path: string, init?: RequestInit): Promise<Response>;
}

const thing = z.object({ id: z.string(), name: z.string() }).meta({ id: 'Thing' });
const params = z.object({ id: idParam('Id of the thing') });
const read = { config: { scope: 'read' } };
const write = { config: { scope: 'write' } };

/** Starts it on a free port; `options` replace the defaults, `declare` adds routes. */
export async function startEdge(
  options: Partial<HttpServerOptions> = {},
  declare: (app: HttpApp) => void = () => undefined,
): Promise<Edge> {
  const keys = { first: createApiKey(), second: createApiKey(), reader: createApiKey() };
  const principals = new Map<string, Principal>([
    [digestOf(keys.first), principal('org-1', 'key-1', ['read', 'write'])],
    [digestOf(keys.second), principal('org-2', 'key-2', ['read', 'write'])],
    [digestOf(keys.reader), principal('org-1', 'key-3', ['read'])],
  ]);
  const commands: string[] = [];
  const server = await buildHttpServer({
    routes(app) {
      declareThings(app, commands);
      declare(app);
    },
    // Like the real authenticator: synchronous for known keys, asynchronous for others.
    authenticator: { authenticate: (key) => principals.get(digestOf(key)) ?? Promise.resolve(null) },
    tokenSecret: 'a secret of sixteen bytes or more',
    metrics: createMetrics({ processMetrics: false }),
    info: { title: 'Edge', version: '1' },
    ...options,
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const call = (path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    if (!headers.has('authorization')) headers.set('authorization', keys.first);
    if (init.body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
    return fetch(url + path, { redirect: 'manual', ...init, headers });
  };
  return { url, server, keys, commands, call };
}

function principal(organizationId: string, keyId: string, scopes: string[]): Principal {
  return {
    organizationId,
    principalType: 'user',
    principalId: `user of ${organizationId}`,
    keyId,
    scopes: new Set(scopes),
    isMember: false,
    expiresAtMs: null,
  };
}

const REVISION = 12;

function declareThings(app: HttpApp, commands: string[]): void {
  const body = z.object({ name: text({ max: 10 }).optional(), meta_data: jsonMap().nullable().optional() });
  app.get('/things/:id', { ...read, schema: { params, response: { 200: thing } } }, async (request, reply) => {
    if (request.principal.organizationId !== 'org-1' || request.params.id !== 'one') throw notFound();
    if (notModified(request, reply, REVISION)) return reply;
    return sendJson(reply, Buffer.from('{"id":"one","name":"One"}'));
  });
  const querystring = z.object({
    ...pageQuery,
    kind: text().optional(),
    old: queryBoolean({ deprecated: true }).optional(),
  });
  const page200 = { 200: z.object({ items: z.array(thing), meta: pageMetaSchema }) };
  app.get('/things', { ...read, schema: { querystring, response: page200 } }, async (request, reply) => {
    const page = openPage(request, request.query, { kind: request.query.kind });
    const from = page.after === null ? page.offset : Number(page.after) + 1;
    const items = Array.from({ length: Math.max(0, Math.min(page.size, 25 - from)) }, (_, index) => from + index);
    const hasNext = from + items.length < 25 && items.length > 0;
    const last = items.length > 0 ? String(items.at(-1)) : null;
    return sendPage(
      reply,
      items.map((item) => Buffer.from(JSON.stringify({ id: String(item), name: '' }))),
      page.meta({ total: 25, hasNext, last }),
    );
  });
  app.patch('/things/:id', { ...write, schema: { params, body, response: { 200: thing } } }, async (request, reply) => {
    const { commandId, traceparent, ifMatch } = commandContext(request);
    if (ifMatch?.allows(streamRevision(REVISION)) === false) throw new Fault('precondition_failed', 'It has changed');
    commands.push(commandId);
    setPosition(request, reply, { stream: 'thing-one', revision: REVISION + 1 });
    void reply.header('etag', etagOf(REVISION + 1));
    return { id: request.params.id, ...request.body, command: commandId, traceparent };
  });
  const failures = z.object({ how: z.enum(['fault', 'bug', 'conflict', 'missing', 'rejected']) });
  app.post('/failures', { ...write, schema: { body: failures } }, async (request) => {
    const { commandId, onDecided } = commandContext(request);
    commands.push(commandId);
    if (request.body.how === 'rejected') onDecided?.();
    if (request.body.how === 'fault') throw storeUnavailable('the event store', new Error('connect 10.0.0.1:2113'));
    if (request.body.how === 'conflict') throw conflict('Others were faster');
    if (request.body.how === 'missing' || request.body.how === 'rejected') throw notFound();
    throw new TypeError('a secret of the inside');
  });
}
