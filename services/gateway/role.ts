import type { Config } from '#libs/platform/config/index.ts';
import { RedisIdempotencyStore, type HttpServer } from '#libs/platform/http/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { buildApiServer } from '#services/api-server.ts';
import type { RoleContext } from '#services/role.ts';

import { startReadModelProbe } from './read-model-probe.ts';

/** The HTTP API: commands append to the log, reads come from Redis. */
export async function start(context: RoleContext, config: Config): Promise<RunningRole> {
  const { server, stop } = await buildGateway(context, config);
  return { url: await server.listen({ host: config.host, port: config.port }), stop };
}

export interface Gateway {
  readonly server: HttpServer;
  /** Closes the server, and ends its event streams. */
  stop(): Promise<void>;
}

/** Builds the server of the API, which does not listen yet. */
export async function buildGateway(context: RoleContext, config: Config): Promise<Gateway> {
  const { platform, features } = context;
  const { probe, job } = startReadModelProbe(context);
  platform.probes.push(probe);
  const replyBytes = platform.metrics.gauge(
    'idempotency_reply_bytes',
    'Replies to idempotency keys that this process has stored in Redis, and that have not expired',
  );
  const { server, stop } = await buildApiServer(context, config, {
    routes: features.routes,
    idempotency: new RedisIdempotencyStore(platform.redis, { onStored: replyBytes.set }),
    positions: features.reader,
  });
  return {
    server,
    async stop() {
      await job.stop();
      // The server waits for event streams, which only the node ends.
      await features.realtime.node().stop();
      await stop();
    },
  };
}
