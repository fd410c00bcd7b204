/** Our side of apply: events from memory, written to the read model. */
import { pino } from 'pino';

import { streamRevision } from '#libs/kernel/event.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import { encodeDocument, entityKeys, type EntityWrite, ReadModel } from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeReadModels } from '#services/features.ts';

import type { ApplyAnswer, ApplyTask } from '../apply.benchmark.ts';
import { storedEvents } from '../channel-log.ts';
import { answerTasks } from '../child-process.ts';
import { flush, keysIn } from '#test/support/redis-commands.ts';

const BATCH = 500;
const BATCHES_PER_CHANNEL = 20;
const IN_FLIGHT = 2;
const ORGANIZATION = '0198f3aa-7c11-7d55-8e7a-0000000000aa';
/** Makes documents of about 600 bytes. */
const CONTENT = 'Where is my order? It should have been here on Monday. '.repeat(8);

answerTasks<ApplyTask, ApplyAnswer>(({ what, redisUrl, events }) =>
  what === 'documents' ? applyDocuments(redisUrl, events) : applyChannels(redisUrl, events),
);

/** As many documents in one call as a batch has events; calls of a batch in sequence, two in flight. */
async function applyDocuments(redisUrl: string, events: number): Promise<ApplyAnswer> {
  const redis = connectRedis(redisUrl);
  await waitForRedis(redis, 60_000);
  const readModel = new ReadModel(redis);
  await readModel.apply([documentBatch(-1, 0)]);
  await redis.remove(await keysIn(redis, '*'));

  // The other side has its commands ready in a file.
  const batches = Array.from({ length: Math.ceil(events / BATCH) }, (_, batch) =>
    documentBatch(Math.floor(batch / BATCHES_PER_CHANNEL), batch % BATCHES_PER_CHANNEL),
  ).values();
  const started = performance.now();
  const work = async (): Promise<void> => {
    for (const batch of batches) {
      const [outcome] = await readModel.apply([batch]);
      if (outcome?.kind !== 'applied') throw new Error(`a batch was not applied: ${outcome?.kind}`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  return { rate: (events / (performance.now() - started)) * 1000 };
}

function documentBatch(channel: number, batch: number): EntityWrite {
  const id = derivedId(ORGANIZATION, String(channel));
  const { revision, document } = entityKeys({ category: 'bench', version: 1 }, ORGANIZATION, id);
  const first = batch * BATCH;
  return {
    revisionKey: revision,
    first: streamRevision(first),
    last: streamRevision(first + BATCH - 1),
    operations: Array.from({ length: BATCH }, (_, index) => ({
      command: 'SET' as const,
      key: `${document}:${first + index}`,
      args: [
        encodeDocument(
          streamRevision(first + index),
          JSON.stringify({ id, sequence: first + index + 1, content: CONTENT }),
        ),
      ],
    })),
    lists: [],
  };
}

/** The projector's whole path from a stored event to Redis. */
async function applyChannels(redisUrl: string, count: number): Promise<ApplyAnswer> {
  const platform = await openPlatform({
    // Never called: all events are in memory.
    eventstoreUrl: 'esdb://127.0.0.1:1?tls=false',
    redisUrl,
    log: pino({ level: 'silent' }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret: 'a secret of this run',
  });
  await waitForRedis(platform.redis, 60_000);
  const { projector } = composeReadModels(platform);
  const shape = { eventsPerChannel: 4, active: 64 };
  const apply = async (events: ReturnType<typeof storedEvents>): Promise<void> => {
    for (let at = 0; at < events.length; at += BATCH) await projector.applyStored(events.slice(at, at + BATCH));
  };
  await apply(storedEvents({ ...shape, events: Math.min(count, 5_000) }));
  await flush(platform.redis);
  const events = storedEvents({ ...shape, events: count });
  const started = performance.now();
  await apply(events);
  return { rate: (count / (performance.now() - started)) * 1000 };
}
