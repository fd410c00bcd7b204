/** Their side of the rebuild: `$all` through the official client, every event dropped; the second pass counts. */
import { EventStoreDBClient } from '@eventstore/db-client';

import { answerTasks, timed } from '../child-process.ts';
import type { RebuildAnswer, RebuildTask } from '../rebuild.benchmark.ts';

answerTasks<RebuildTask, RebuildAnswer>(async ({ eventstoreUrl }) => {
  const client = EventStoreDBClient.connectionString(eventstoreUrl);
  async function readAll(): Promise<number> {
    let events = 0;
    for await (const { event } of client.readAll()) if (event?.type.startsWith('$') === false) events += 1;
    return events;
  }
  await readAll();
  return timed(readAll);
});
