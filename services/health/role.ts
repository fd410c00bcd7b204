import type { Config } from '#libs/platform/config/index.ts';
import { buildHttpServer } from '#libs/platform/http/index.ts';
import type { Role } from '#libs/platform/lifecycle/index.ts';
import type { RoleContext } from '#services/roles.ts';
import { VERSION } from '#services/version.ts';

/** Health and metrics alone, for a process that runs no gateway: whoever watches it must be able to ask. */
export const healthRole: Role<RoleContext, Config> = {
  name: 'health',
  async start({ platform }, config) {
    const server = await buildHttpServer({
      routes: () => undefined,
      authenticator: { authenticate: () => null },
      tokenSecret: platform.tokenSecret,
      probes: platform.probes,
      metrics: platform.metrics,
      stopping: platform.stopping,
      logger: platform.log,
      info: { title: 'Parley', version: VERSION, description: 'Health and metrics of a process without a gateway.' },
    });
    const url = await server.listen({ host: config.host, port: config.port });
    return { url, stop: () => server.close(config.stopTimeoutMs) };
  },
};
