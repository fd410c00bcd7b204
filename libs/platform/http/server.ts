import type { IncomingMessage } from 'node:http';
import cors, { type FastifyCorsOptionsDelegateCallback } from '@fastify/cors';
import Fastify, { type FastifyRequest, LogController } from 'fastify';
import { bodyMemory } from '#libs/platform/config/index.ts';
import { refuseUpgrade, type Upgrades } from '#libs/platform/websocket/index.ts';
import { logRequests, traceRequests } from './request-log.ts';
import { registerDocumentation, registerOpenApi } from './openapi.ts';
import { BODY_LIMIT, BodyBudget } from './body-budget.ts';
import { notFound, replyWithError } from './errors.ts';
import { parseJsonBody, requirePlainJson } from './json-body.ts';
import { KeyLookups } from './key-lookups.ts';
import { operationRoutes } from './operations.ts';
import { PastReads } from './past-reads.ts';
import { PublicAddress } from './public-address.ts';
import { createLimiters, type Limiters, RecentCallers } from './rate-limits.ts';
import { requestIdOf, traceparentOf } from './request-context.ts';
import { attachPipeline } from './route-pipeline.ts';
import type { HttpApp, HttpServer, HttpServerOptions, HttpTypeProvider } from './server-options.ts';
import { TokenSigner } from './signed-token.ts';
import {
  AllowedMethods,
  answerBrokenRequest,
  headFault,
  noSuchRoute,
  refuseExpectation,
  refuseUnservable,
} from './unservable.ts';
import { InputRefused, validatorCompiler, wholeRefusal } from './validation/validator.ts';

const GRACE_MS = 10_000;

/** Builds the server; it does not listen yet. Registers every part here, in order. */
export async function buildHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const closing = new AbortController();
  const isClosing = (): boolean => closing.signal.aborted;
  const isStopping = (): boolean => isClosing() || options.stopping?.aborted === true;
  const publicAddress = new PublicAddress(options);
  const app = createApp(options, publicAddress);
  const allowed = new AllowedMethods();

  // 1. Reading of requests, writing of errors
  decorate(app, options);
  app.decorate('publicAddress', publicAddress);
  app.decorate('closing', closing.signal);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    requirePlainJson(request.headers);
    done(null, parseJsonBody(Buffer.isBuffer(body) ? body : Buffer.from(body)));
  });
  app.setErrorHandler((error: Error, request, reply) => {
    if (error instanceof InputRefused) return replyWithError(wholeRefusal(error, request), request, reply);
    // Fastify checks the headers of a QUERY before it looks for a route; no route supports QUERY.
    const wrongMethod = 'code' in error && error.code === 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE';
    return replyWithError(wrongMethod ? noSuchRoute(allowed, request.url) : error, request, reply);
  });

  // 2. Hooks of every route
  const { logger, accessLog = false } = options;
  // The first hook, so that requests that the others refuse have a line, too.
  if (logger && (accessLog || logger.isLevelEnabled('debug'))) logRequests(app, logger, accessLog ? 'info' : 'debug');
  const limiters = createLimiters(options);
  const keys = new KeyLookups(options.authenticator, { limitAddresses: options.rateLimits?.perAddress !== false });
  if (options.corsOrigins && options.corsOrigins.length > 0) {
    await app.register(cors, { delegator: corsDelegator(options.corsOrigins) });
  }
  refuseUnservable(app, allowed, limiters);
  if (options.spans) traceRequests(app, options.spans);
  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) allowed.add(method, route.url);
  });
  // Before the pipeline: the page and its script are public files.
  registerDocumentation(app, options.info.title);
  registerOpenApi(app, options.info);
  app.addHook('onRoute', (route) => {
    attachPipeline(route, { options, keys, limiters, isStopping, isClosing });
  });

  // 3. The routes
  operationRoutes(app, options, isStopping);
  options.routes(app);
  await app.ready();
  app.server.on('checkExpectation', refuseExpectation.bind(null, closing.signal));
  const stopUpgrades = serveUpgrades(app, options.upgrades, { limiters, keys });

  return {
    app,
    listen: (address) => app.listen(address),
    async close(graceMs = GRACE_MS) {
      closing.abort();
      stopUpgrades();
      const cut = setTimeout(() => app.server.closeAllConnections(), graceMs);
      await app.close().finally(() => clearTimeout(cut));
    },
  };
}

function createApp(options: HttpServerOptions, publicAddress: PublicAddress): HttpApp {
  const { logger, requestTimeoutMs = 15_000 } = options;
  return Fastify({
    // Fastify's own logging costs a child logger and two listeners per request. Without it, `request.log` is the
    // logger of the process, so log calls pass `request_id: request.id`.
    logger: false,
    ...(logger && { childLoggerFactory: () => logger }),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestIdOf,
    bodyLimit: BODY_LIMIT,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 72_000,
    http: {
      // Node swaps the two deadlines if this one is longer.
      headersTimeout: Math.min(10_000, requestTimeoutMs),
      connectionsCheckingInterval: 2_000,
      // Node would answer without a body; `headFault` refuses such requests instead.
      requireHostHeader: false,
      // Ignores other upgrades, such as HTTP/2 in clear text, which some clients always offer.
      shouldUpgradeCallback: (request) => options.upgrades?.claims(request) === true,
    },
    // The pipeline answers during the stop; Fastify's own answer cannot be configured.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    ...(publicAddress.prefix !== '' && {
      rewriteUrl: ({ url = '/' }: IncomingMessage) => publicAddress.withoutPrefix(url),
    }),
    trustProxy: options.trustedProxies ? [...options.trustedProxies] : false,
    // An emoji in a path is up to 105 characters when percent-encoded.
    routerOptions: { maxParamLength: 256 },
    // Otherwise, Fastify loads compilers of its own, which take a twentieth of a start.
    schemaController: {
      compilersFactory: {
        // Fastify types this as a compiler of JSON Schema, and calls it like any other.
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => () => (data) => JSON.stringify(data),
      },
    },
    frameworkErrors: (_error, request, reply) => replyWithError(notFound(), request, reply),
    clientErrorHandler: answerBrokenRequest,
  }).withTypeProvider<HttpTypeProvider>();
}

/** @returns a function that stops it */
function serveUpgrades(
  app: HttpApp,
  upgrades: Upgrades | undefined,
  { limiters, keys }: { readonly limiters: Limiters; readonly keys: KeyLookups },
): () => void {
  if (upgrades === undefined) return () => undefined;
  app.server.on('upgrade', (request, socket, head) => {
    request.url = app.publicAddress.withoutPrefix(request.url ?? '/');
    const fault = headFault(request);
    if (fault !== undefined) return refuseUpgrade(socket, 400, fault.code, fault.message);
    const address = limiters.addressOfUpgrade(request);
    const seconds = limiters.upgradeAfter(address);
    keys.serveUpgrade(request, address);
    if (seconds === 0) upgrades.upgrade(request, socket, head);
    else refuseUpgrade(socket, 429, 'rate_limited', 'Too many requests', { 'retry-after': `${seconds}` });
  });
  return upgrades.feed();
}

function decorate(app: HttpApp, options: HttpServerOptions): void {
  app.decorate('tokens', new TokenSigner(options.tokenSecret));
  app.decorate('pastReads', new PastReads(options));
  app.decorate('callers', new RecentCallers());
  app.decorate('bodies', new BodyBudget(options.maxBodyBytes ?? bodyMemory()));
  app.decorateRequest('authenticated', null);
  app.decorateRequest('memberChannel', null);
  app.decorateRequest('idempotentRun', null);
  app.decorateRequest('ownTraceparent', null);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('bodyBytes', 0);
  app.decorateRequest('principal', {
    getter(this: FastifyRequest) {
      if (this.authenticated === null) throw new TypeError('a public route has no principal');
      return this.authenticated;
    },
  });
  app.decorateRequest('traceparent', {
    getter(this: FastifyRequest) {
      return (this.ownTraceparent ??= traceparentOf(this.headers.traceparent));
    },
  });
  app.decorateRequest('idempotencyKey', {
    getter(this: FastifyRequest) {
      return this.idempotentRun?.scope.key;
    },
  });
}

const EXPOSED_HEADERS = [
  'etag',
  'parley-position',
  'idempotency-replayed',
  'retry-after',
  'x-request-id',
  'traceparent',
  // Resumable uploads
  'location',
  'tus-resumable',
  'tus-version',
  'tus-extension',
  'tus-max-size',
  'upload-offset',
  'upload-length',
  'upload-expires',
];

/** The plugin is only registered for a list of origins: without one, no origin is allowed, at no cost per request. */
function corsDelegator(origins: readonly string[]): FastifyCorsOptionsDelegateCallback {
  const options = {
    origin: [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: 600,
  };
  // An OPTIONS that is no preflight belongs to its route.
  const withoutPreflight = { ...options, preflight: false };
  return ({ headers }, done) =>
    done(null, headers['access-control-request-method'] === undefined ? withoutPreflight : options);
}
