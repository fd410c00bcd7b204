import type { FastifyRequest } from 'fastify';

import { parseTraceparent, type Spans } from '#libs/platform/telemetry/index.ts';

import type { HttpApp } from './server-options.ts';

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
