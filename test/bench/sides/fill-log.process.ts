/** Fills a log with the history of channels. */
import { connectEventStore } from '#libs/platform/eventstore/index.ts';

import { channelTurns, type LogShape } from '../channel-log.ts';
import { answerTasks } from '../child-process.ts';

interface FillTask {
  readonly eventstoreUrl: string;
  readonly shape: LogShape;
  /** Turns at the beginning that are in the log already. */
  readonly skip?: number;
}

answerTasks<FillTask, object>(async ({ eventstoreUrl, shape, skip = 0 }) => {
  const { store, close } = await connectEventStore({ url: eventstoreUrl });
  const underWay = new Map<string, Promise<void>>();
  for (const { stream, after, events } of channelTurns(shape).drop(skip)) {
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
