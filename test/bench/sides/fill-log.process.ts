/** Fills a log with the history of channels. */
import { connectEventStore } from '#libs/platform/eventstore/index.ts';

import { channelTurns } from '../channel-log.ts';
import type { LogShape } from '../channel-log.ts';
import { answerTasks } from '../child-process.ts';

answerTasks<{ eventstoreUrl: string; shape: LogShape }, object>(async ({ eventstoreUrl, shape }) => {
  const { store, close } = connectEventStore({ url: eventstoreUrl });
  const underWay = new Map<string, Promise<void>>();
  for (const { stream, after, events } of channelTurns(shape)) {
    const append = (underWay.get(stream) ?? Promise.resolve()).then(async () => {
      const { kind } = await store.append(stream, after, events, { deadlineMs: 20_000 });
      if (kind !== 'appended') throw new Error(`${stream}: ${kind}`);
    });
    underWay.set(stream, append);
    if (underWay.size >= 64) {
      await Promise.all(underWay.values());
      underWay.clear();
    }
  }
  await Promise.all(underWay.values());
  await close();
  return {};
});
