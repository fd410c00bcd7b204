import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { parseTraceparent, type Spans } from '#libs/platform/telemetry/index.ts';
import type { HttpApp } from './server-options.ts';

/**
 * Logs a line for each request when its reply has ended, or its caller has left: an event stream at its end. Of the URL,
 * only the pattern of the route is logged, because the rest may hold secrets.
 */
export function logRequests(app: HttpApp, logger: Logger, level: 'info' | 'debug'): void {
  app.addHook('onRequest', (request, reply, done) => {
    const startedAt = performance.now();
    // Fastify's `onResponse` says nothing of a caller that leaves before the reply begins.
    reply.raw.once('close', () => logger[level](lineOf(request, reply, startedAt), 'answered'));
    done();
  });
}

function lineOf(request: FastifyRequest, reply: FastifyReply, startedAt: number) {
  const { authenticated } = request;
  return {
    request_id: request.id,
    method: request.method,
    route: request.routeOptions.url ?? null,
    status: reply.statusCode,
    key_id: authenticated?.keyId ?? null,
    organization_id: authenticated?.organizationId ?? null,
    address: request.ip,
    duration_ms: Math.round(1_000 * (performance.now() - startedAt)) / 1_000,
    is_complete: reply.raw.writableFinished,
  };
}

/** Records a span of each request with a trace context of its own: those of commands, and those of callers that trace. */
export function traceRequests(app: HttpApp, spans: Spans): void {
  app.addHook('onResponse', (request, reply, done) => {
    const context = parseTraceparent(request.ownTraceparent ?? undefined);
    if (context !== null) {
      const { statusCode } = reply;
      const route = request.routeOptions.url;
      spans.record({
        name: route === undefined ? request.method : `${request.method} ${route}`,
        kind: 'server',
        context,
        parentSpanId: callerOf(request)?.spanId ?? null,
        startedMs: performance.timeOrigin + request.startedAt,
        endedMs: Date.now(),
        attributes: {
          'http.request.method': request.method,
          'http.route': route,
          'http.response.status_code': statusCode,
          'parley.request.id': request.id,
          'user.id': request.authenticated?.principalType === 'user' ? request.authenticated.principalId : null,
        },
        error: statusCode >= 500 ? String(statusCode) : null,
      });
    }
    done();
  });
}

function callerOf({ headers: { traceparent } }: FastifyRequest) {
  return parseTraceparent(typeof traceparent === 'string' ? traceparent : undefined);
}
