/** Our side of appends: commands of one channel, decided, appended, applied to the read model, answered. */
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';

import { newId } from '#libs/kernel/ids.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeFeatures } from '#services/features.ts';

import { appendedEvent, benchChannel, metadataFor } from '../appended-event.ts';
import type { AppendTask, AppendAnswer } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';

answerTasks<AppendTask, AppendAnswer>(async ({ eventstoreUrl, redisUrl, writers, seconds, warmUpSeconds }) => {
  const failures: string[] = [];
  const platform = openPlatform({
    eventstoreUrl,
    redisUrl,
    // What the log warns of, a read model that could not be written, would make the figures worthless.
    log: pino({ level: 'warn' }, { write: (line) => void failures.push(line) }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret: 'a secret of this run',
  });
  await waitForRedis(platform.redis, 5_000);
  const channels = composeFeatures(platform).channels.commands;
  const channel = benchChannel();
  await channels.create({ commandId: channel.id, ...metadataFor(channel.id) }, channel);

  let count = 0;
  const end = new AbortController();
  async function write(): Promise<void> {
    while (!end.signal.aborted) {
      const { name } = appendedEvent(count + 1).data;
      count += 1;
      const commandId = newId();
      const result = await channels.update({ commandId, ...metadataFor(commandId) }, channel.id, { name });
      if (!result.ok) throw new Error(result.rejection.reason);
    }
  }
  const all = Promise.all(Array.from({ length: writers }, write));
  await Promise.race([all, delay(warmUpSeconds * 1000)]);
  const [before, started] = [count, performance.now()];
  const cpu = process.cpuUsage();
  await Promise.race([all, delay(seconds * 1000)]);
  const measured = count;
  const { user, system } = process.cpuUsage(cpu);
  const rate = ((measured - before) / (performance.now() - started)) * 1000;
  end.abort();
  await all;
  if (failures.length > 0) throw failures[0];
  return { rate, cpuMicros: (user + system) / (measured - before), stream: `channel-${channel.id}`, events: count + 1 };
});
