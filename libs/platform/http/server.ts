import cors from '@fastify/cors';
import Fastify, { LogController } from 'fastify';
import type { FastifyRequest } from 'fastify';
import type { Socket } from 'node:net';
import { refuseUpgrade } from '#libs/platform/websocket/index.ts';
import type { Upgrades } from '#libs/platform/websocket/index.ts';
import { createAllowedMethods } from './allowed-methods.ts';
import type { AllowedMethods } from './allowed-methods.ts';
import { registerDocumentation } from './documentation.ts';
import { HttpError, notFound, replyWithError } from './errors.ts';
import { parseJsonBody } from './json-body.ts';
import { KeyLookups } from './key-lookups.ts';
import { openApiRoute, registerOpenApi } from './openapi.ts';
import { operationRoutes } from './operations.ts';
import { PastReads } from './past-reads.ts';
import { createLimiters } from './rate-limits.ts';
import type { Limiters } from './rate-limits.ts';
import { headFault, refuseExpectation, requirePlainJson } from './request-head.ts';
import { requestIdOf, traceparentOf } from './request-context.ts';
import { attachPipeline, name } from './route-pipeline.ts';
import type { HttpApp, HttpServer, HttpServerOptions, HttpTypeProvider } from './server-options.ts';
import { createTokenSigner } from './signed-token.ts';
import { InputRefused, validatorCompiler, wholeRefusal } from './validation/validator.ts';

const GRACE_MS = 10_000;

/** Builds the server, with every part registered here, in order; it does not listen yet. */
export async function buildHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  let closing = false;
  const isClosing = (): boolean => closing;
  const isStopping = (): boolean => closing || options.stopping?.aborted === true;
  const app = createApp(options);
  const allowed = createAllowedMethods();

  // 1. How requests are read, and how errors are written
  decorate(app, options);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    requirePlainJson(request.headers);
    done(null, parseJsonBody(Buffer.isBuffer(body) ? body : Buffer.from(body)));
  });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.setErrorHandler((error: Error, request, reply) => {
    if (error instanceof InputRefused) return replyWithError(wholeRefusal(error, request), request, reply);
    // Fastify judges a QUERY by its headers before it looks for a route; no path of ours takes QUERY.
    const wrongMethod = 'code' in error && error.code === 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE';
    return replyWithError(wrongMethod ? noSuchRoute(allowed, request.url) : error, request, reply);
  });

  // 2. What stands around every route
  const limiters = createLimiters(options);
  const keys = new KeyLookups(options.authenticator, { limitAddresses: options.rateLimits?.perAddress !== false });
  if (options.corsOrigins && options.corsOrigins.length > 0) await app.register(cors, corsOptions(options.corsOrigins));
  refuseUnservable(app, allowed, limiters);
  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) allowed.add(method, route.url);
  });
  // Before the pipeline: the page and its script are plain files, for everybody.
  registerDocumentation(app, options.info.title);
  await registerOpenApi(app, options.info);
  app.addHook('onRoute', (route) => {
    attachPipeline(route, {
      keys,
      limiters,
      metrics: options.metrics,
      logger: options.logger,
      idempotency: options.idempotency,
      positions: options.positions,
      handlerTimeoutMs: options.handlerTimeoutMs ?? 30_000,
      isStopping,
      isClosing,
    });
  });

  // 3. The routes
  operationRoutes(app, { probes: options.probes ?? [], metrics: options.metrics, isStopping });
  options.routes(app);
  openApiRoute(app);
  await app.ready();
  app.server.on('checkExpectation', refuseExpectation);
  const unfeed = feed(app, options.upgrades, limiters);

  return {
    app,
    listen: (address) => app.listen(address),
    async close(graceMs = GRACE_MS) {
      closing = true;
      unfeed();
      const cut = setTimeout(() => app.server.closeAllConnections(), graceMs);
      await app.close().finally(() => clearTimeout(cut));
    },
  };
}

function createApp(options: HttpServerOptions): HttpApp {
  const { logger } = options;
  return Fastify({
    // Fastify's own logging costs a child logger and two listeners for each request. Without it,
    // `request.log` is the logger of the process: whoever logs adds `request_id: request.id`.
    logger: false,
    ...(logger && { childLoggerFactory: () => logger }),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestIdOf,
    bodyLimit: options.bodyLimit ?? 256 * 1024,
    requestTimeout: options.requestTimeoutMs ?? 15_000,
    keepAliveTimeout: 72_000,
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 2_000,
      // Node's own answer has no body: `headFault` refuses it.
      requireHostHeader: false,
      // Any other upgrade (HTTP/2 in clear text, which some clients always offer) may be ignored, and is.
      shouldUpgradeCallback: (request) => options.upgrades?.claims(request) === true,
    },
    // The gate answers during the stop, in our form; Fastify's own answer is not configurable.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    trustProxy: options.trustedProxies ? [...options.trustedProxies] : false,
    // An emoji in a path is up to 105 characters when percent-encoded.
    routerOptions: { maxParamLength: 256 },
    frameworkErrors: (_error, request, reply) => replyWithError(notFound(), request, reply),
    clientErrorHandler: answerBrokenRequest,
  }).withTypeProvider<HttpTypeProvider>();
}

/** @returns ends it */
function feed(app: HttpApp, upgrades: Upgrades | undefined, { upgradeAfter }: Limiters): () => void {
  if (upgrades === undefined) return () => undefined;
  app.server.on('upgrade', (request, socket, head) => {
    const fault = headFault(request);
    if (fault !== undefined) return refuseUpgrade(socket, 400, fault.code, fault.message);
    const seconds = upgradeAfter(request);
    if (seconds === 0) upgrades.upgrade(request, socket, head);
    else refuseUpgrade(socket, 429, 'rate_limited', 'Too many requests', { 'retry-after': `${seconds}` });
  });
  return upgrades.feed();
}

function decorate(app: HttpApp, options: HttpServerOptions): void {
  app.decorate('tokens', createTokenSigner(options.tokenSecret));
  app.decorate('pastReads', new PastReads(options));
  app.decorateRequest('authenticated', null);
  app.decorateRequest('idempotentRun', null);
  app.decorateRequest('ownTraceparent', null);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('principal', {
    getter(this: FastifyRequest) {
      if (this.authenticated === null) throw new TypeError('this route has no principal: it is public');
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
];

/** Without an allow-list the plugin is left out: no origin is allowed, and no read pays for saying so. */
function corsOptions(origins: readonly string[]) {
  return {
    origin: [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: 600,
  };
}

/**
 * Refuses what no route serves, before its body is read: 400 for an ambiguous head, 404, or 405 where the path
 * exists. Counted per address, so that scanning has a price too.
 */
function refuseUnservable(app: HttpApp, allowed: AllowedMethods, { perAddress }: Limiters): void {
  app.addHook('onRequest', (request, reply, done) => {
    const fault = headFault(request.raw);
    if (fault === undefined && !request.is404) return done();
    name(request, reply);
    perAddress?.(request, reply);
    throw fault ?? noSuchRoute(allowed, request.url);
  });
}

function noSuchRoute(allowed: AllowedMethods, url: string): HttpError {
  const methods = allowed.of(url);
  if (methods.length === 0) return notFound();
  return new HttpError(405, 'method_not_allowed', 'Method Not Allowed', { allow: methods.join(', ') });
}

const BROKEN: Readonly<Record<string, readonly [string, string, string]>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'headers_too_large',
    'The headers are larger than allowed',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'request_timeout', 'The request did not arrive in time'],
};

/** Bytes that never became a request: written by hand, for there is no reply. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const [status, code, detail] = BROKEN[error.code ?? ''] ?? [
    '400 Bad Request',
    'bad_request',
    'The request cannot be read',
  ];
  const body = JSON.stringify({ detail, code });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  if (socket.writable) socket.write(`${head}connection: close\r\n\r\n${body}`);
  socket.destroy(error);
}
