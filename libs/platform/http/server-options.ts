import type {
  FastifyBaseLogger,
  FastifyContextConfig,
  FastifyInstance,
  FastifyTypeProvider,
  RawServerDefault,
} from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { z } from 'zod';
import type { EntityReader } from '#libs/platform/readmodel/index.ts';
import type { Metrics, Spans } from '#libs/platform/telemetry/index.ts';
import type { Upgrades } from '#libs/platform/websocket/index.ts';
import type { Authenticator } from './auth.ts';
import type { ChannelAccess, MemberRoute } from './members.ts';
import type { IdempotencyStore } from './idempotency.ts';

/**
 * Derives the types of a route from its zod schemas. Replies are not checked against the response schema, because
 * reads send stored bytes.
 */
export interface HttpTypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends z.core.$ZodType ? z.output<this['schema']> : unknown;
  serializer: unknown;
}

export type HttpApp = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  HttpTypeProvider
>;

/**
 * Options of the routes of one tag, by the scope that they require: `read`, `write`, or another. Without `members`, a route is
 * closed to members.
 */
export function routesTagged(tag: string) {
  const requiring =
    (scope: string) =>
    <Schema extends object>(
      schema: Schema,
      members?: MemberRoute,
      more: { readonly ownField?: FastifyContextConfig['ownField'] } = {},
    ) => ({
      config: { scope, ...(members !== undefined && { members }), ...more },
      schema: { tags: [tag], ...schema },
    });
  return { requiring, reads: requiring('read'), writes: requiring('write') };
}

export interface RateLimit {
  readonly max: number;
  readonly windowMs: number;
}

/**
 * A dependency of this process: a store, or a projection that keeps up. It counts as down if `check` throws or does
 * not answer. `detail` is public at `/health/ready`: lag and positions, no addresses and no secrets.
 */
export interface ReadinessProbe {
  readonly name: string;
  check(): Promise<{ readonly ok: boolean; readonly detail?: Readonly<Record<string, unknown>> }>;
}

export interface HttpServerOptions {
  /** Declares all routes. Called once, before the server listens. */
  readonly routes: (app: HttpApp) => void;
  readonly authenticator: Authenticator;
  /** Without it, members reach no channel. */
  readonly access?: ChannelAccess;
  /** Signs cursors and positions; at least 16 bytes, and the same in every process. */
  readonly tokenSecret: string;
  /** Without a store, requests with an `Idempotency-Key` get 503. */
  readonly idempotency?: IdempotencyStore;
  /** Without a waiter, reads only check `Parley-Position`. */
  readonly positions?: Pick<EntityReader, 'waitUntilVisible'>;
  readonly probes?: readonly ReadinessProbe[];
  readonly metrics: Metrics;
  /** Gets a span of each request that led to events. Default: none. */
  readonly spans?: Spans | null;
  /** When it aborts, `/health/ready` answers 503 and replies close their connections; requests are served until `close`. */
  readonly stopping?: AbortSignal;
  /** Serves websocket upgrades. Without it, upgrade requests are served as plain requests. */
  readonly upgrades?: Upgrades;
  readonly logger?: Logger;
  /** Whether each answered request gets a line in the log; false by default. */
  readonly accessLog?: boolean;
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description?: string;
    /** Descriptions of the tags of routes. */
    readonly tags?: Readonly<Record<string, string>>;
  };
  /** Origins that browsers may call from; none by default. */
  readonly corsOrigins?: readonly string[];
  /** Addresses or networks of proxies whose `X-Forwarded-…` headers are used; none by default. */
  readonly trustedProxies?: readonly string[];
  /** The address of the API for its clients. Default: that of each request. */
  readonly publicUrl?: string | undefined;
  /** `false` switches a limit off. */
  readonly rateLimits?: { readonly perKey?: RateLimit | false; readonly perAddress?: RateLimit | false };
  /** Bytes of bodies that are served at a time; a share of the memory by default. */
  readonly maxBodyBytes?: number;
  /** Deadline for the arrival of the whole request; 15 s by default. */
  readonly requestTimeoutMs?: number;
  /** Time after which a POST, PUT, PATCH or DELETE gets 503; 30 s by default. A route may set its own `handlerTimeout`. */
  readonly handlerTimeoutMs?: number;
}

export interface HttpServer {
  readonly app: HttpApp;
  /** @returns the base URL, with the chosen port if `port` is 0 */
  listen(address: { host: string; port: number }): Promise<string>;
  /** Refuses new requests (503), finishes those in flight, closes. Cuts remaining connections after `graceMs`. */
  close(graceMs?: number): Promise<void>;
}
