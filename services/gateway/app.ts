import type { Config } from '#libs/platform/config/index.ts';
import { buildHttpServer } from '#libs/platform/http/index.ts';
import type { HttpServer } from '#libs/platform/http/index.ts';
import { ReadModelPositions } from '#libs/platform/readmodel/index.ts';
import { RedisIdempotencyStore } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, featureAuthenticator, featureRoutes } from '#services/features.ts';

const MINUTE_MS = 60_000;

export interface Gateway {
  readonly server: HttpServer;
  /** Ends what runs beside the server; the server is closed first. */
  stop(): void;
}

/** Puts the API together on a platform. Nothing listens yet. */
export async function buildGateway(platform: Platform, config: Config): Promise<Gateway> {
  const features = composeFeatures(platform);
  const perMinute = (max: number) => (max === 0 ? (false as const) : { max, windowMs: MINUTE_MS });
  const idempotency = new RedisIdempotencyStore(platform.redis);
  const { authenticator, stop } = featureAuthenticator(platform, features);
  const server = await buildHttpServer({
    routes: featureRoutes(features, idempotency),
    authenticator,
    tokenSecret: platform.tokenSecret,
    idempotency,
    positions: new ReadModelPositions(platform.readModel, features.projector),
    probes: platform.probes,
    metrics: platform.metrics,
    logger: platform.log,
    info: {
      title: 'Parley',
      version: '0.1.0',
      description: 'Channels and interactions of conversational AI agents, as an event log and its read models.',
    },
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    rateLimits: {
      perKey: perMinute(config.rateLimitPerKey),
      perAddress: perMinute(config.rateLimitPerAddress),
    },
    requestTimeoutMs: config.requestTimeoutMs,
  });
  return { server, stop };
}
