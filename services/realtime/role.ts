import { WebsocketAdmission, eventStreamRoutes } from '#libs/features/realtime/index.ts';
import type { RealtimeNode } from '#libs/features/realtime/index.ts';
import type { Config } from '#libs/platform/config/index.ts';
import { buildHttpServer } from '#libs/platform/http/index.ts';
import type { Role } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { featuresOf, featureAuthenticator } from '#services/features.ts';
import type { Features } from '#services/features.ts';
import { serverOptions } from '#services/gateway/server-options.ts';

import { realtimeNodeOf } from './node.ts';

/** Websockets. Beside a gateway it serves them on the gateway's port, else on its own, and event streams too. */
export const realtimeRole: Role<Platform, Config> = {
  name: 'realtime',
  async start(platform, config) {
    const features = featuresOf(platform);
    const node = realtimeNodeOf(platform, features);
    const { tickets, access } = features.realtime;
    const release = platform.upgrades.handle(
      new WebsocketAdmission(node, { tickets, access, origins: config.realtimeOrigins }),
    );
    const own = platform.upgrades.isFed ? null : await listenAlone(platform, config, { features, node });
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
  platform: Platform,
  config: Config,
  { features, node }: { readonly features: Features; readonly node: RealtimeNode },
): Promise<{ url: string; stop(): Promise<void> }> {
  const { authenticator, stop } = featureAuthenticator(features);
  const server = await buildHttpServer({
    ...serverOptions(platform, config),
    routes: (app) => eventStreamRoutes(app, { node, channels: features.channels.queries }),
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
