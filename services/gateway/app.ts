import type { Config } from '#libs/platform/config/index.ts';
import { buildHttpServer, RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import type { HttpServer } from '#libs/platform/http/index.ts';
import { ReadModelPositions } from '#libs/platform/readmodel/index.ts';
import { readModelProbe } from '#services/health/read-model-probe.ts';
import type { RoleContext } from '#services/roles.ts';

import { serverOptions } from './server-options.ts';

export interface Gateway {
  readonly server: HttpServer;
  /** Ends what runs beside the server; the server is closed first. */
  stop(): void;
}

/** Builds the server of the API, which does not listen yet. */
export async function buildGateway({ platform, features }: RoleContext, config: Config): Promise<Gateway> {
  const idempotency = new RedisIdempotencyStore(platform.redis);
  const { authenticator, stop } = features.keys.startAuthenticator();
  platform.probes.push(readModelProbe(features.projector, platform.redis));
  const server = await buildHttpServer({
    ...serverOptions(platform, config),
    routes: features.routes,
    authenticator,
    idempotency,
    positions: new ReadModelPositions(platform.readModel, features.projector),
  });
  return {
    server: {
      ...server,
      async close(graceMs) {
        // Event streams end only when they are told to.
        await features.realtime.node().stop();
        await server.close(graceMs);
      },
    },
    stop,
  };
}
