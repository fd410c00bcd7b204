/** A process that runs only a projector; answers each message with its probe. */
import { pino } from 'pino';
import { parseConfig } from '#libs/platform/config/index.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { start } from '#services/projector/role.ts';

import { roleContext } from './role-context.ts';

const config = parseConfig(process.env);
const { eventstoreUrl, redisUrl, tokenSecret } = config;
if (eventstoreUrl === undefined || redisUrl === undefined || tokenSecret === undefined) throw new Error('no stores');
const platform = await openPlatform({
  eventstoreUrl,
  redisUrl,
  tokenSecret,
  log: pino({ level: config.logLevel }),
  metrics: createMetrics({ processMetrics: false }),
});
await start(roleContext(platform), config);
process.on('message', () => {
  const probe = platform.probes.find(({ name }) => name === 'projection');
  void probe?.check().then(
    ({ detail }) => process.send?.(detail ?? {}),
    (error: unknown) => process.send?.({ problem: String(error) }),
  );
});
process.once('disconnect', () => process.exit(0));
