/** A process with a private Redis in the folder of its argument, which tests kill. */
import { startPrivateRedis } from '#infra/private-redis/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';

await startPrivateRedis({ dataDir: process.argv[2] ?? '', log: silentLog });
process.once('disconnect', () => process.exit(0));
process.send?.('started');
