/**
 * The hooks around a handler. They are attached to each route when it is declared, not globally, because its needs
 * are known then: a read runs one hook before its handler and one after it, both synchronous unless a key has to be
 * looked up or a position to be awaited.
 */
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from 'fastify';
import type { z } from 'zod';
import { Fault } from '#libs/kernel/faults.ts';
import { ARRIVING_BODY_TIMEOUT_MS } from './arriving-body.ts';
import { keyOf, requireScope, type Principal } from './auth.ts';
import { tookTooLong, unauthorized, ValidationFailure } from './errors.ts';
import { beginIdempotent, endIdempotent, idempotentRunOf } from './idempotency.ts';
import { BODY_LIMIT } from './body-budget.ts';
import type { KeyLookups } from './key-lookups.ts';
import { admittedTo, type MemberRoute, requireOpen } from './members.ts';
import { awaitPosition, POSITION_HEADER } from './position.ts';
import { callerAddress, type Limiters } from './rate-limits.ts';
import { beginReply, commandIdOf } from './request-context.ts';
import type { HttpServerOptions } from './server-options.ts';

export interface Pipeline {
  readonly options: HttpServerOptions;
  readonly keys: KeyLookups;
  readonly limiters: Limiters;
  /** The process should get no new requests; those that arrive are served. */
  readonly isStopping: () => boolean;
  /** The server refuses new requests. */
  readonly isClosing: () => boolean;
}

type Done = HookHandlerDoneFunction;
/**
 * A hook ends synchronously by calling `done` or throwing, or returns a promise and does not call `done`. Fastify
 * supports both in one hook.
 */
type Hook = (request: FastifyRequest, reply: FastifyReply, done: Done) => void | Promise<unknown>;

type SendHook = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done) => void | Promise<void>;

/** Scopes of routes that hand out or withdraw rights: a parameter that such a route does not know is refused. */
const STRICT_SCOPES: ReadonlySet<string> = new Set(['admin', 'platform']);

/**
 * A 404 is sent at the end of a step of this length: what exists and may not be seen takes other work than what does not
 * exist, such as a look-up that is remembered, and both take less than a step.
 */
const NOT_FOUND_STEP_MS = 10;

export function attachPipeline(route: RouteOptions, pipeline: Pipeline): void {
  const { config } = route;
  const method = String(route.method);
  if (!config?.public && config?.scope === undefined) {
    throw new TypeError(`route ${method} ${route.url} needs config.scope or config.public`);
  }
  const gate = config?.public
    ? publicGate(config.public, pipeline)
    : gateOf(method, config?.scope ?? '', config?.members, pipeline);
  route.onRequest = [gate, ...listed(route.onRequest)];
  const { metrics, idempotency, handlerTimeoutMs = 30_000 } = pipeline.options;
  const timing = metrics.http.route(method, route.url);
  // An `onResponse` hook would add two listeners to every response.
  const finish = (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    timing.observe(reply.statusCode, performance.now() - request.startedAt);
    request.server.bodies.release(request);
    // An idle connection would delay the stop.
    if (pipeline.isStopping()) void reply.header('connection', 'close');
    done();
  };
  const measure: SendHook = (request, reply, _payload, done) => {
    if (reply.statusCode !== 404 || config?.public) return finish(request, reply, done);
    const elapsed = performance.now() - request.startedAt;
    const steps = Math.ceil(elapsed / NOT_FOUND_STEP_MS);
    at(request.startedAt + steps * NOT_FOUND_STEP_MS, () => finish(request, reply, done));
  };
  route.onSend = [...listed(route.onSend), measure];
  if (STRICT_SCOPES.has(config?.scope ?? ''))
    route.preValidation = [strictQuery(route), ...listed(route.preValidation)];
  const isCommand = !config?.public && !isRead(method);
  const limitMs = route.handlerTimeout ?? (isCommand ? handlerTimeoutMs : undefined);
  // A body that is read as it arrives is not in memory.
  if (isCommand && limitMs !== ARRIVING_BODY_TIMEOUT_MS) route.onRequest.push(holdBody(route.bodyLimit ?? BODY_LIMIT));
  delete route.handlerTimeout;
  if (limitMs !== undefined) route.onRequest.unshift(timeLimit(limitMs));
  if (isCommand && config?.ignoresIdempotencyKey !== true && (method === 'POST' || method === 'PATCH')) {
    // Before validation, which replaces the body by its parsed form: the fingerprint covers the body as sent.
    route.preValidation = [readIdempotencyKey, ...listed(route.preValidation)];
    if (config?.handlesIdempotencyKey !== true) attachIdempotency(route, idempotency);
  }
  // After validation, which gives ids their one form, and before a stored reply is replayed.
  if (config?.members) route.preHandler = [memberGate(config.members, pipeline), ...listed(route.preHandler)];
}

/** Timers end a whole number of milliseconds after they were set, which would carry on the fraction that the work took. */
const TIMER_MS = 2;

/** Runs `work` at a time of `performance.now()`, to a few microseconds if the process is idle. */
function at(time: number, work: () => void): void {
  const rest = time - performance.now();
  if (rest <= 0) work();
  else if (rest > TIMER_MS) setTimeout(at, rest - TIMER_MS, time, work);
  else setImmediate(at, time, work);
}

function memberGate(members: MemberRoute, { options: { access } }: Pipeline): Hook {
  return (request, _reply, done) => {
    if (!request.principal.isMember) return done();
    const admitted = admittedTo(request, members, access);
    if (admitted instanceof Promise) {
      return admitted.then((channel) => {
        request.memberChannel = channel;
      });
    }
    request.memberChannel = admitted;
    done();
  };
}

/**
 * Elsewhere, unknown parameters are ignored, as the contract's services do. Here, the caller may believe that one of them
 * limits the right, for instance to an organization.
 */
function strictQuery({ schema }: RouteOptions): Hook {
  const known = new Set(Object.keys((schema?.querystring as z.ZodObject | undefined)?.shape ?? {}));
  return ({ query }, _reply, done) => {
    const errors = Object.entries(query as Record<string, unknown>)
      .filter(([name]) => !known.has(name))
      .map(([name, input]) => ({
        type: 'extra_forbidden',
        loc: ['query', name],
        msg: 'Extra inputs are not permitted',
        input,
      }));
    if (errors.length > 0) throw new ValidationFailure(errors);
    done();
  };
}

/** Answers 503 if the handler takes too long, and ends the hold of the body. Fastify's own time limit is over as soon as the body was read. */
function timeLimit(ms: number): Hook {
  return (request, reply, done) => {
    const answer = (): void => {
      if (!reply.sent && !reply.raw.headersSent) void reply.send(tookTooLong());
    };
    const timer = setTimeout(answer, ms);
    reply.raw.once('close', () => {
      clearTimeout(timer);
      request.server.bodies.release(request);
    });
    done();
  };
}

function holdBody(most: number): Hook {
  return (request, _reply, done) => {
    request.server.bodies.hold(request, most);
    done();
  };
}

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

function listed<T>(hooks: T | T[] | undefined): T[] {
  return hooks === undefined ? [] : Array.isArray(hooks) ? hooks : [hooks];
}

function publicGate(kind: true | 'counted', pipeline: Pipeline): Hook {
  const begin = kind === 'counted' ? countedStart(pipeline) : beginReply;
  return (request, reply, done) => {
    begin(request, reply);
    done();
  };
}

/** Refuses requests while the server closes, and from addresses that have used up their window. */
function countedStart({ isClosing, limiters: { perAddress } }: Pipeline) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    beginReply(request, reply);
    if (isClosing()) throw new Fault('stopping', 'This process is stopping', { retryAfterSeconds: 2 });
    perAddress?.(request, reply);
  };
}

/** 1. limit by address 2. authenticate 3. scope, and what is open to members 4. limit by key 5. on reads: wait for the position */
function gateOf(method: string, scope: string, members: MemberRoute | undefined, pipeline: Pipeline): Hook {
  const { keys, options, limiters } = pipeline;
  const { perKey } = limiters;
  const begin = countedStart(pipeline);
  const mayWait = isRead(method);

  function identify(request: FastifyRequest): Principal | null | Promise<Principal | null> {
    const presented = keyOf(request.raw);
    return presented && keys.authenticate(presented.key, callerAddress(request), presented.digest);
  }

  /** @returns a promise when the request has to wait */
  function admit(request: FastifyRequest, reply: FastifyReply, principal: Principal | null): Promise<void> | undefined {
    if (principal === null) throw unauthorized();
    requireScope(principal, scope);
    if (principal.isMember) requireOpen(principal, members);
    request.authenticated = principal;
    request.server.callers.note(principal.organizationId);
    perKey?.(request, reply);
    if (!mayWait || request.headers[POSITION_HEADER] === undefined) return undefined;
    return awaitPosition(request, options.positions);
  }

  return (request, reply, done) => {
    begin(request, reply);
    const principal = identify(request);
    if (principal instanceof Promise) return principal.then((found) => admit(request, reply, found));
    const waiting = admit(request, reply, principal);
    if (waiting !== undefined) return waiting;
    done();
  };
}

const readIdempotencyKey: Hook = (request, _reply, done) => {
  request.idempotentRun = idempotentRunOf(request);
  done();
};

function attachIdempotency(route: RouteOptions, store: HttpServerOptions['idempotency']): void {
  // After validation: a request that it refuses does not take the key.
  const begin: Hook = (request, reply, done) => {
    const run = request.idempotentRun;
    if (run === null) return done();
    if (!store) throw new Fault('store_unavailable', 'Idempotency keys are unavailable', { retryAfterSeconds: 2 });
    return beginIdempotent(run, store, reply, route.config?.ownField?.(request, commandIdOf(run)));
  };
  const end: SendHook = (request, reply, payload, done) => {
    const run = request.idempotentRun;
    if (run?.lease === undefined || !store) return done();
    return endIdempotent(run, store, request, reply, payload);
  };
  route.preHandler = [begin, ...listed(route.preHandler)];
  route.onSend = [...listed(route.onSend), end];
}
