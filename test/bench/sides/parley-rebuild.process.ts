/** Our side of the rebuild: the code of `npx parley rebuild`; the second pass counts, so that the code is warm. */
import { pino } from 'pino';

import { openPlatform } from '#libs/platform/runtime/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeReadModels } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';

import { answerTasks, timed } from '../child-process.ts';
import type { RebuildAnswer, RebuildTask } from '../rebuild.benchmark.ts';

answerTasks<RebuildTask, RebuildAnswer>(async ({ eventstoreUrl, redisUrl }) => {
  const platform = await openPlatform({
    eventstoreUrl,
    redisUrl,
    log: pino({ level: 'silent' }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret: 'a secret of this run',
  });
  await waitForRedis(platform.redis, 60_000);
  const parts = { ...platform, ...composeReadModels(platform) };
  const { signal } = new AbortController();
  await rebuild(parts, { signal });
  return timed(() => rebuild(parts, { signal }));
});
