import type { GlobalPosition } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { VERSION, type Config } from '#libs/platform/config/index.ts';
import { buildHttpServer } from '#libs/platform/http/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { RoleContext } from './role.ts';

/**
 * Serves health and metrics alone, for a process in which no role listens, or none yet: `isStarting` answers 503 to all
 * other requests, because a client believes a 404.
 */
export async function startHealth(
  { platform }: Pick<RoleContext, 'platform'>,
  config: Config,
  { isStarting = false } = {},
): Promise<RunningRole> {
  const server = await buildHttpServer({
    routes: (app) => {
      if (!isStarting) return;
      app.all('/api/*', { config: { public: true }, schema: { hide: true } }, () => {
        throw storeUnavailable('the event store');
      });
    },
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
}

/**
 * Exports the position of a consumer of the log, and the position of the newest event. A position is exported as its
 * commit part, which grows by one per event in the embedded event store, and by about the event's bytes in
 * EventStoreDB; while there is no position, as NaN.
 */
export function observePosition(
  { metrics, feed }: Pick<Platform, 'metrics' | 'feed'>,
  { name, help, read }: { readonly name: string; readonly help: string; readonly read: () => GlobalPosition | null },
): void {
  metrics.observedGauge('log_head', 'Commit position of the newest event of the log', async () =>
    commitOf(await feed.head()),
  );
  metrics.observedGauge(name, help, () => commitOf(read()));
}

function commitOf(position: GlobalPosition | null): number {
  return position === null ? Number.NaN : Number(position.commit);
}
