/**
 * The HTTP edge, independent of categories: validation with pydantic's errors, authentication, the error table,
 * paging, idempotency, preconditions, OpenAPI, health, metrics.
 *
 * A feature's routes file declares its routes on the app, like this:
 *
 * ```ts
 * const params = z.object({ id: idParam('Id of the channel') });
 *
 * export function channelRoutes(app: HttpApp, channels: Channels): void {
 *   app.get('/api/v1/channels/:id', {
 *     config: { scope: 'read' },
 *     schema: { operationId: 'getChannel', tags: ['channels'], params, response: { 200: channelSchema } },
 *   }, async (request, reply) => {
 *     const found = await channels.document(request.principal.organizationId, request.params.id);
 *     if (found === null) throw notFound();                   // missing or foreign: the same bytes
 *     if (notModified(request, reply, found.revision)) return reply;
 *     return sendJson(reply, found.json);                     // a Buffer, as it is stored
 *   });
 *
 *   app.get('/api/v1/channels', {
 *     config: { scope: 'read' },
 *     schema: {
 *       operationId: 'listChannels', tags: ['channels'],
 *       querystring: z.object({ ...pageQuery, is_owner: queryBoolean().optional() }),
 *       response: { 200: z.object({ items: z.array(channelSchema), meta: pageMetaSchema }) },
 *     },
 *   }, async (request, reply) => {
 *     const { size, page: _page, cursor: _cursor, ...filter } = request.query;
 *     const page = openPage(request, request.query, filter);
 *     const found = await channels.list(request.principal.organizationId, filter, page);
 *     return sendPage(reply, found.items, page.meta({ total: found.total, hasNext: found.hasNext, last: found.last }));
 *   });
 *
 *   app.patch('/api/v1/channels/:id', {
 *     config: { scope: 'write' },
 *     schema: { operationId: 'updateChannel', tags: ['channels'], params, body: changes, response: { 200: channelSchema } },
 *   }, async (request, reply) => {
 *     const outcome = await channels.update(commandContext(request), request.params.id, request.body);
 *     if (!outcome.ok) throw statusOf(outcome.rejection);     // each reason to a status, exhaustively
 *     setPosition(request, reply, { stream: outcome.stream, revision: outcome.revision });
 *     reply.header('etag', etagOf(outcome.revision));
 *     return outcome.channel;
 *   });
 * }
 * ```
 *
 * Every route has: 401, 403 (`config.scope`), 429, 413, 415, 422, the wait for
 * `Parley-Position` on GET, replay by `Idempotency-Key` on POST and PATCH, metrics, trace context,
 * and an entry in the OpenAPI document.
 */
export { buildHttpServer } from './server.ts';
export { routesTagged } from './server-options.ts';
export { readPast } from './past-reads.ts';
export type { HttpApp, HttpServer, HttpServerOptions, ReadinessProbe } from './server-options.ts';
export { mayActAs, mayNotActAs, requireMayActAs, UNAUTHENTICATED } from './auth.ts';
export type { ActingAs, Caller } from './auth.ts';
export type { Authenticator, Principal } from './auth.ts';
export { createApiKey, digestOf, isWellFormedApiKey, API_KEY_PREFIX } from './auth.ts';
export { canonicalJson } from './signed-token.ts';
export {
  answerOf,
  conflict,
  forbidden,
  HttpError,
  JSON_TYPE,
  invalid,
  invalidBody,
  notFound,
  unauthorized,
  ValidationFailure,
} from './errors.ts';
export { parseJsonBody } from './json-body.ts';
export { locateRawNumbers, numberProblem, parseJson, scanJson } from './validation/json-numbers.ts';
export { parseInput } from './validation/validator.ts';
export { idempotencyInFlight } from './idempotency.ts';
export type { IdempotencyScope, IdempotencyStart, IdempotencyStore } from './idempotency.ts';
export { RedisIdempotencyStore } from './idempotency.redis.ts';
export { liveCommand } from './live-command.ts';
export type { LiveCommandCall, LiveCommandType } from './live-command.ts';
export { openPage, pageMetaSchema, pageQuery } from './paging.ts';
export type { PageQuery } from './paging.ts';
export { setPosition } from './position.ts';
export type { Position } from './position.ts';
export { etagOf, notModified, refuseIfMatch } from './replies.ts';
export { commandContext } from './request-context.ts';
export { sendJson, sendPage } from './replies.ts';
export {
  httpUrl,
  idParam,
  idReference,
  jsonMap,
  queryBoolean,
  queryInteger,
  queryPointInHistory,
  singleEmoji,
  stringMap,
  text,
  timestamp,
  uuid,
} from './validation/schemas.ts';
