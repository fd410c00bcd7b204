/** The thread that reads and writes the indexes of graphs. */
import { workerData } from 'node:worker_threads';

import { serveIndexes } from '#libs/platform/textindex/index.ts';

import { GraphIndexes, type GraphIndexesOptions } from './graph-index.ts';
import type { Task } from './thread-messages.ts';

const indexes = new GraphIndexes(workerData as GraphIndexesOptions);
const BACKGROUND: ReadonlySet<Task['kind']> = new Set(['missing-vectors', 'add-vectors']);

serveIndexes(indexes, ({ graphId }: Task) => graphId, answer);

function answer(task: Task): unknown {
  const { graphId } = task;
  if (task.kind === 'delete') return indexes.delete(graphId);
  if (task.kind === 'remove') return indexes.remove(graphId);
  // The work in the background does not bring back what was removed.
  if (BACKGROUND.has(task.kind) && !indexes.has(graphId)) return [];
  return indexes.use(graphId, (index) => {
    if (task.kind === 'write') index.write(task.events);
    if (task.kind === 'progress') return index.progress();
    if (task.kind === 'search') return index.search(task.question);
    if (task.kind === 'past') return index.past(task.point);
    if (task.kind === 'counts') return index.counts(task.revision);
    if (task.kind === 'facts') return index.facts(task.ids);
    if (task.kind === 'missing-vectors') return index.missingVectors(task.limit);
    if (task.kind === 'add-vectors') index.addVectors(task.vectors);
    return null;
  });
}
