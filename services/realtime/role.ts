import { WebsocketAdmission } from '#libs/features/realtime/index.ts';
import type { Config } from '#libs/platform/config/index.ts';
import { PublicAddress } from '#libs/platform/http/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { buildApiServer } from '#services/api-server.ts';
import type { RoleContext } from '#services/role.ts';

/** Serves websockets on the gateway's port beside a gateway; otherwise on its own port, with event streams. */
export async function start(context: RoleContext, config: Config): Promise<RunningRole> {
  const { upgrades } = context.platform;
  const { tickets, grantOfMember, node, streamRoutes } = context.features.realtime;
  const address = new PublicAddress(config);
  const release = upgrades.handle(
    new WebsocketAdmission(node(), {
      tickets,
      grantOfMember,
      origins: config.realtimeOrigins,
      isOwnOrigin: (origin, request) => address.isOwn(origin, request),
    }),
  );
  const own = upgrades.isFed ? null : await buildApiServer(context, config, { routes: streamRoutes });
  return {
    url: await own?.server.listen({ host: config.host, port: config.port }),
    async stop() {
      await node().stop();
      release();
      await own?.stop();
    },
  };
}
