import type { Config } from '#libs/platform/config/index.ts';
import type { Role } from '#libs/platform/lifecycle/index.ts';
import type { RoleContext } from '#services/roles.ts';

import { buildGateway } from './app.ts';

/** The HTTP API: commands append to the log, reads come from Redis. */
export const gatewayRole: Role<RoleContext, Config> = {
  name: 'gateway',
  async start(context, config) {
    const { server, stop } = await buildGateway(context, config);
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
