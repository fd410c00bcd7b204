/**
 * The HTTP edge, independent of categories: validation with pydantic's errors, authentication, the error table,
 * paging, idempotency, preconditions, OpenAPI, health, metrics. docs/adding-a-feature.md shows how routes use it.
 *
 * Every route has: 401, 403 (`config.scope`), 429, 413, 415, 422, the wait for `Parley-Position` on GET, replay by
 * `Idempotency-Key` on POST and PATCH, metrics, trace context, and an entry in the OpenAPI document.
 */
export { ARRIVING_BODY_TIMEOUT_MS, arrivingBody } from './arriving-body.ts';
export { buildHttpServer } from './server.ts';
export { routesTagged } from './server-options.ts';
export { readPast } from './past-reads.ts';
export type { HttpApp, HttpServer, HttpServerOptions, ReadinessProbe } from './server-options.ts';
export {
  actorOf,
  API_KEY_PREFIX,
  createApiKey,
  digestOf,
  isWellFormedApiKey,
  mayNotActAs,
  MEMBER_SCOPES,
  requireMayActAs,
} from './auth.ts';
export type { Authenticator, Principal } from './auth.ts';
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
  tooManyRequests,
  unauthorized,
  ValidationFailure,
} from './errors.ts';
export {
  beginEventStream,
  eventStreamQuery,
  eventStreamResponse,
  lastSeenSequence,
  requireEventStreams,
  sendEventStreamHead,
  sequenceNotReached,
} from './event-stream.ts';
export { requireEndpoint, requireFetchable } from './fetchable-url.ts';
export { parseJsonBody, refuseCompression } from './json-body.ts';
export { locateRawNumbers, numberProblem, parseJson, scanJson } from './validation/json-numbers.ts';
export { completionOf } from './validation/completion.ts';
export { parseInput } from './validation/validator.ts';
export { runOnce, runRequestOnce } from './run-once.ts';
export { authenticateUpgrade } from './key-lookups.ts';
export { callerAddress, withPermit, Windows } from './rate-limits.ts';
export { requireKnownKey } from './idempotency.ts';
export type { IdempotencyStore, OwnField } from './idempotency.ts';
export { RedisIdempotencyStore } from './idempotency.redis.ts';
export { type ChannelAccess, type MemberRoute, OF_CALLER, OF_CHANNEL } from './members.ts';
export { liveCommand } from './live-command.ts';
export type { LiveCommandCall, LiveCommandType } from './live-command.ts';
export { pascalCase, withDiscriminators, withTitles, type Direction, JsonSchemas } from './openapi-schemas.ts';
export { PublicAddress } from './public-address.ts';
export { downloadedFile } from './openapi.ts';
export { openPage, pageMetaSchema, pageQuery } from './paging.ts';
export type { PageQuery } from './paging.ts';
export { ConcurrencyLimit } from './concurrency-limit.ts';
export { setPosition } from './position.ts';
export type { Position } from './position.ts';
export { etagOf, notModified, refuseIfMatch, sendJson, sendPage } from './replies.ts';
export type { SentPage } from './replies.ts';
export { commandContext } from './request-context.ts';
export {
  httpUrl,
  idFilter,
  idParam,
  givenId,
  idReference,
  jsonMap,
  queryBoolean,
  queryBooleanOrNull,
  queryInteger,
  queryOption,
  queryPointInHistory,
  shownTime,
  singleEmoji,
  stringMap,
  text,
  timestamp,
  uuid,
} from './validation/schemas.ts';
