import { WebsocketAdmission } from '#libs/features/realtime/index.ts';
import type { Config } from '#libs/platform/config/index.ts';
import { buildHttpServer } from '#libs/platform/http/index.ts';
import type { Role } from '#libs/platform/lifecycle/index.ts';
import { serverOptions } from '#services/gateway/server-options.ts';
import type { RoleContext } from '#services/roles.ts';

/** Serves websockets on the gateway's port beside a gateway; otherwise on its own port, with event streams. */
export const realtimeRole: Role<RoleContext, Config> = {
  name: 'realtime',
  async start(context, config) {
    const { platform, features } = context;
    const { tickets } = features.realtime;
    const node = features.realtime.node();
    const release = platform.upgrades.handle(
      new WebsocketAdmission(node, { tickets, origins: config.realtimeOrigins }),
    );
    const own = platform.upgrades.isFed ? null : await listenAlone(context, config);
    return {
      url: own?.url,
      async stop() {
        await node.stop();
        release();
        await own?.stop();
      },
    };
  },
};

async function listenAlone(
  { platform, features }: RoleContext,
  config: Config,
): Promise<{ url: string; stop(): Promise<void> }> {
  const { authenticator, stop } = features.keys.startAuthenticator();
  const server = await buildHttpServer({
    ...serverOptions(platform, config),
    routes: features.realtime.streamRoutes,
    authenticator,
  });
  const url = await server.listen({ host: config.host, port: config.port });
  return {
    url,
    async stop() {
      await server.close(config.stopTimeoutMs);
      stop();
    },
  };
}
