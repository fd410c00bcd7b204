import type { FastifyBaseLogger, FastifyInstance, FastifyTypeProvider, RawServerDefault } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { z } from 'zod';
import type { Metrics } from '#libs/platform/telemetry/index.ts';
import type { Upgrades } from '#libs/platform/websocket/index.ts';
import type { Authenticator } from './auth.ts';
import type { IdempotencyStore } from './idempotency.ts';
import type { PositionWaiter } from './position.ts';

/**
 * Types of a route follow from its zod schemas. What a handler sends is not checked against the
 * response schema: the read path sends bytes that are ready.
 */
export interface HttpTypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends z.core.$ZodType ? z.output<this['schema']> : unknown;
  serializer: unknown;
}

/** The Fastify instance that routes are declared on. */
export type HttpApp = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  HttpTypeProvider
>;

/** At most `max` requests in `windowMs` milliseconds. */
export interface RateLimit {
  readonly max: number;
  readonly windowMs: number;
}

/**
 * One thing that this process needs in order to serve: a store, or a projection that keeps up.
 * `check` may throw, or never answer: both count as down. `detail` is shown to everybody who can
 * reach `/health/ready`: lag and positions, no addresses and no secrets.
 */
export interface ReadinessProbe {
  readonly name: string;
  check(): Promise<{ readonly ok: boolean; readonly detail?: Readonly<Record<string, unknown>> }>;
}

export interface HttpServerOptions {
  /** Declares the routes, all of them, explicitly. Runs once, before the server listens. */
  readonly routes: (app: HttpApp) => void;
  readonly authenticator: Authenticator;
  /** Signs cursors and positions; the same in every process, at least 16 bytes. */
  readonly tokenSecret: string;
  /** Without a store, a request with an `Idempotency-Key` is 503. */
  readonly idempotency?: IdempotencyStore;
  /** Without a waiter, `Parley-Position` on reads is checked and not waited for. */
  readonly positions?: PositionWaiter;
  /** What `/health/ready` asks. */
  readonly probes?: readonly ReadinessProbe[];
  readonly metrics: Metrics;
  /** Once it aborts, `/health/ready` says 503 and answers end their connections; else all goes on until `close`. */
  readonly stopping?: AbortSignal;
  /** Where requests for websockets go. Without it they are answered as if they asked for none. */
  readonly upgrades?: Upgrades;
  readonly logger?: Logger;
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  /** Origins that browsers may call from; none by default. */
  readonly corsOrigins?: readonly string[];
  /** Whose `X-Forwarded-For` is believed: addresses or networks. Nobody's by default. */
  readonly trustedProxies?: readonly string[];
  /** `false` switches a limit off. */
  readonly rateLimits?: { readonly perKey?: RateLimit | false; readonly perAddress?: RateLimit | false };
  /** Bytes; 256 KiB by default. */
  readonly bodyLimit?: number;
  /** Until the whole request must have arrived; 15 s by default. */
  readonly requestTimeoutMs?: number;
  /** Until a POST, PUT, PATCH or DELETE is answered 503; 30 s by default. A route may set its own `handlerTimeout`. */
  readonly handlerTimeoutMs?: number;
}

export interface HttpServer {
  readonly app: HttpApp;
  /** @returns the base URL, with the port that was taken where `port` is 0 */
  listen(address: { host: string; port: number }): Promise<string>;
  /** Refuses new requests (503), finishes those in flight, closes. Cuts what is left after `graceMs`. */
  close(graceMs?: number): Promise<void>;
}
