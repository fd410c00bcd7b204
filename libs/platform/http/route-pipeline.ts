/**
 * What happens to a request around its handler. Attached to each route when it is declared, not as
 * global hooks: what a route needs is known then, so the read path runs one hook before the handler
 * and one after it, both synchronous unless a limit or an unknown key makes them wait.
 */
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from 'fastify';
import { Fault } from '#libs/kernel/faults.ts';
import type { Metrics } from '../telemetry/index.ts';
import { hasScope, presentedKey } from './auth.ts';
import type { Authenticator, Principal } from './auth.ts';
import { forbidden, unauthorized } from './errors.ts';
import { beginIdempotent, endIdempotent, idempotentRunOf } from './idempotency.ts';
import type { IdempotencyStore } from './idempotency.ts';
import { awaitPosition, POSITION_HEADER, positionOf } from './position.ts';
import type { PositionWaiter } from './position.ts';
import type { Limiters } from './rate-limits.ts';

export interface Pipeline {
  readonly authenticator: Authenticator;
  readonly limiters: Limiters;
  readonly metrics: Metrics;
  readonly idempotency: IdempotencyStore | undefined;
  readonly positions: PositionWaiter | undefined;
  readonly handlerTimeoutMs: number;
  readonly isClosing: () => boolean;
}

type Done = HookHandlerDoneFunction;
type Hook = (request: FastifyRequest, reply: FastifyReply, done: Done) => void;

/** Runs for every route as it is declared. */
export function attachPipeline(route: RouteOptions, pipeline: Pipeline): void {
  const { config } = route;
  const method = String(route.method);
  if (config?.public !== true && config?.scope === undefined) {
    throw new TypeError(`route ${method} ${route.url} needs config.scope or config.public`);
  }
  const timing = pipeline.metrics.http.route(method, route.url);
  route.onRequest = [config.public ? stamp : gateOf(config.scope ?? '', pipeline), ...listed(route.onRequest)];
  route.onResponse = [
    ...listed(route.onResponse),
    (_request: FastifyRequest, reply: FastifyReply, done: () => void) => {
      timing.observe(reply.statusCode, reply.elapsedTime);
      done();
    },
  ];
  if (config.public) return;
  if (method === 'GET' || method === 'HEAD') attachPosition(route, pipeline);
  else route.handlerTimeout ??= pipeline.handlerTimeoutMs;
  if (method === 'POST' || method === 'PATCH') attachIdempotency(route, pipeline);
}

function listed<T>(hooks: T | T[] | undefined): T[] {
  return hooks === undefined ? [] : Array.isArray(hooks) ? hooks : [hooks];
}

/** Names the request in its answer, whatever the answer will be. */
export function stamp(request: FastifyRequest, reply: FastifyReply, done: Done): void {
  void reply.header('x-request-id', request.id);
  void reply.header('traceparent', request.traceparent);
  done();
}

/** 1. limit by address 2. authenticate 3. scope 4. limit by key */
function gateOf(scope: string, { authenticator, limiters, isClosing }: Pipeline): Hook {
  const { perAddress, perKey } = limiters;

  function admit(request: FastifyRequest, reply: FastifyReply, principal: Principal | null, done: Done): void {
    if (principal === null) return done(unauthorized());
    if (!hasScope(principal.scopes, scope)) {
      return done(forbidden(`The API key lacks the scope ${scope}`, 'missing_scope'));
    }
    request.authenticated = principal;
    if (perKey === undefined) return done();
    perKey(request, reply).then(() => done(), done);
  }

  function authenticate(request: FastifyRequest, reply: FastifyReply, done: Done): void {
    const key = presentedKey(request.headers.authorization);
    const principal = key === null ? null : authenticator.authenticate(key);
    if (principal instanceof Promise) principal.then((found) => admit(request, reply, found, done), done);
    else admit(request, reply, principal, done);
  }

  return (request, reply, done) => {
    void reply.header('x-request-id', request.id);
    void reply.header('traceparent', request.traceparent);
    if (isClosing()) return done(new Fault('stopping', 'This process is stopping', { retryAfterSeconds: 2 }));
    if (perAddress === undefined) return authenticate(request, reply, done);
    perAddress(request, reply).then(() => authenticate(request, reply, done), done);
  };
}

/** Reads wait for the position that the caller has seen written. */
function attachPosition(route: RouteOptions, { positions }: Pipeline): void {
  const hook: Hook = (request, _reply, done) => {
    if (request.headers[POSITION_HEADER] === undefined) return done();
    if (positions) awaitPosition(request, positions).then(() => done(), done);
    else {
      positionOf(request);
      done();
    }
  };
  route.preHandler = [hook, ...listed(route.preHandler)];
}

function attachIdempotency(route: RouteOptions, { idempotency: store }: Pipeline): void {
  // Before validation, which replaces the body by its parsed form: the fingerprint is of what was sent.
  const read: Hook = (request, _reply, done) => {
    request.idempotentRun = idempotentRunOf(request);
    done();
  };
  // After validation: what is refused there never took the key.
  const begin: Hook = (request, reply, done) => {
    const run = request.idempotentRun;
    if (run === null) return done();
    if (!store)
      return done(new Fault('store_unavailable', 'Idempotency keys are unavailable', { retryAfterSeconds: 2 }));
    beginIdempotent(run, store, reply).then((answered) => {
      if (!answered) done();
    }, done);
  };
  const end = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done): void => {
    const run = request.idempotentRun;
    if (run?.lease === undefined || !store) return done();
    void endIdempotent(run, store, request, reply, payload).then(() => done());
  };
  route.preValidation = [read, ...listed(route.preValidation)];
  route.preHandler = [begin, ...listed(route.preHandler)];
  route.onSend = [...listed(route.onSend), end];
}
