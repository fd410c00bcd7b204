import type { Config } from '#libs/platform/config/index.ts';
import type { HttpServerOptions } from '#libs/platform/http/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { VERSION } from '#services/version.ts';

const MINUTE_MS = 60_000;

/** What holds for every HTTP server of the API, whatever it serves. */
export function serverOptions(
  platform: Platform,
  config: Config,
): Omit<HttpServerOptions, 'routes' | 'authenticator' | 'idempotency' | 'positions'> {
  const perMinute = (max: number) => (max === 0 ? (false as const) : { max, windowMs: MINUTE_MS });
  return {
    tokenSecret: platform.tokenSecret,
    probes: platform.probes,
    metrics: platform.metrics,
    logger: platform.log,
    stopping: platform.stopping,
    upgrades: platform.upgrades,
    info: {
      title: 'Parley',
      version: VERSION,
      description:
        'Channels and interactions of conversational AI agents, as an event log and its read models. What is told of a ' +
        'channel as it happens is described in [/asyncapi.json](/asyncapi.json).',
    },
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    rateLimits: {
      perKey: perMinute(config.rateLimitPerKey),
      perAddress: perMinute(config.rateLimitPerAddress),
    },
    requestTimeoutMs: config.requestTimeoutMs,
  };
}
