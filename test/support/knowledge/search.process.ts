/** A process that answers searches from indexes in a folder, which others may use at the same time. */
import { flushCompileCache } from 'node:module';
import { pino } from 'pino';

import { GraphSearch } from '#libs/features/knowledge/search/graph-search.ts';
import type { Question } from '#libs/features/knowledge/search/index.ts';
import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';

const { EVENTSTORE_URL: url = '', FOLDER: folder = '' } = process.env;
const { store } = await connectEventStore({ url });
const metrics = createMetrics({ processMetrics: false });
const indexes = new GraphSearch({ store, metrics, log: pino({ level: 'silent' }), folder, threads: 1 });

interface Asked {
  readonly id: number;
  readonly graphId: string;
  readonly question: Question;
}

process.on('message', ({ id, graphId, question }: Asked) => {
  indexes.search(graphId, question).then(
    (result) => process.send?.({ id, result }),
    (error: unknown) => process.send?.({ id, failure: String(error) }),
  );
});
// Killed or disconnected: nothing is closed.
process.on('disconnect', () => process.exit());
process.send?.({ id: 0 });
// Tests kill it, which would leave its modules to be compiled at each start.
flushCompileCache();
