import type { Config } from '#libs/platform/config/index.ts';
import { buildHttpServer, RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import type { HttpServer } from '#libs/platform/http/index.ts';
import { ReadModelPositions } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { featuresOf, featureAuthenticator, featureRoutes } from '#services/features.ts';
import { readModelProbe } from '#services/health/read-model-probe.ts';
import { realtimeNodeOf } from '#services/realtime/node.ts';

import { serverOptions } from './server-options.ts';

export interface Gateway {
  readonly server: HttpServer;
  /** Ends what runs beside the server; the server is closed first. */
  stop(): void;
}

/** Puts the API together on a platform. Nothing listens yet. */
export async function buildGateway(platform: Platform, config: Config): Promise<Gateway> {
  const features = featuresOf(platform);
  const idempotency = new RedisIdempotencyStore(platform.redis);
  const { authenticator, stop } = featureAuthenticator(features);
  const node = realtimeNodeOf(platform, features);
  platform.probes.push(readModelProbe(features.projector, platform.redis));
  const server = await buildHttpServer({
    ...serverOptions(platform, config),
    routes: featureRoutes(features, node),
    authenticator,
    idempotency,
    positions: new ReadModelPositions(platform.readModel, features.projector),
  });
  return {
    server: {
      ...server,
      async close(graceMs) {
        // Event streams end only when they are told to.
        await node.stop();
        await server.close(graceMs);
      },
    },
    stop,
  };
}
