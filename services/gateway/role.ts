import type { Config } from '#libs/platform/config/index.ts';
import type { Role } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { buildGateway } from './app.ts';

/** The HTTP API: commands append to the log, reads come from Redis. */
export const gatewayRole: Role<Platform, Config> = {
  name: 'gateway',
  async start(platform, config) {
    const { server, stop } = await buildGateway(platform, config);
    const url = await server.listen({ host: config.host, port: config.port });
    return {
      url,
      async stop() {
        await server.close(config.stopTimeoutMs);
        stop();
      },
    };
  },
};
