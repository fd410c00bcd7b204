/** Fills channels with interactions: appended in large batches, and applied as a projector would, from memory. */
import { streamRevision } from '#libs/kernel/event.ts';
import { type EntityId, eventIdOf, newId } from '#libs/kernel/ids.ts';
import { metadataOf } from '#libs/platform/commands/index.ts';
import { composeReadModels } from '#services/features.ts';

import { appendedEvent, benchChannel, metadataFor } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';
import type { FillChannelsTask } from '../growth.benchmark.ts';
import { openBenchPlatform } from './bench-platform.ts';

const BATCH = 500;

answerTasks<FillChannelsTask, EntityId[]>(async ({ sizes, ...urls }) => {
  const { platform } = await openBenchPlatform(urls);
  const { projector, state } = composeReadModels(platform);
  const start = await state.begin();
  const ids: EntityId[] = [];
  let applied: Promise<void> = Promise.resolve();
  for (const size of sizes) {
    const channel = benchChannel();
    const stream = `channel-${channel.id}`;
    ids.push(channel.id);
    for (let first = 0; first < size; first += BATCH) {
      const events = Array.from({ length: Math.min(BATCH, size - first) }, (_, index) => {
        const commandId = newId();
        const metadata = metadataOf({ commandId, ...metadataFor(commandId) });
        const event =
          first + index === 0
            ? { type: 'ChannelCreated.v1', data: channel }
            : appendedEvent('posts', first + index, commandId, '');
        return { ...event, id: eventIdOf(commandId, 0), metadata };
      });
      const { kind } = await platform.store.append(stream, streamRevision(first - 1), events, { deadlineMs: 20_000 });
      if (kind !== 'appended') throw new Error(`${stream}: ${kind}`);
      // One batch is applied while the next one is appended.
      await applied;
      applied = projector.applyStored(
        events.map((event, index) => ({
          ...event,
          stream,
          revision: streamRevision(first + index),
          position: null,
          createdMs: 0,
        })),
      );
    }
  }
  await applied;
  await state.save(start, null, true);
  await platform.close();
  return ids;
});
