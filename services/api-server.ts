import { VERSION, type Config } from '#libs/platform/config/index.ts';
import { buildHttpServer, type HttpServer, type HttpServerOptions } from '#libs/platform/http/index.ts';

import type { RoleContext } from './role.ts';

const MINUTE_MS = 60_000;

/** Builds an HTTP server that authenticates by API keys. It does not listen yet; `stop` closes it. */
export async function buildApiServer(
  { platform, features }: RoleContext,
  config: Config,
  own: Pick<HttpServerOptions, 'routes' | 'idempotency' | 'positions'>,
): Promise<{ readonly server: HttpServer; stop(): Promise<void> }> {
  const perMinute = (max: number) => (max === 0 ? (false as const) : { max, windowMs: MINUTE_MS });
  const { authenticator, stop } = features.startAuthenticator();
  const server = await buildHttpServer({
    ...own,
    authenticator,
    tokenSecret: platform.tokenSecret,
    probes: platform.probes,
    metrics: platform.metrics,
    spans: platform.spans,
    logger: platform.log,
    stopping: platform.stopping,
    upgrades: platform.upgrades,
    info: {
      title: 'Parley',
      version: VERSION,
      description:
        'Channels and interactions of conversational AI agents, as an event log and its read models. ' +
        '[/asyncapi.json](/asyncapi.json) describes the frames that subscribers of a channel receive.',
    },
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    rateLimits: {
      perKey: perMinute(config.rateLimitPerKey),
      perAddress: perMinute(config.rateLimitPerAddress),
    },
    requestTimeoutMs: config.requestTimeoutMs,
  });
  return {
    server,
    async stop() {
      await server.close(config.stopTimeoutMs);
      stop();
    },
  };
}
