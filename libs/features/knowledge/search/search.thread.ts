/** The thread that reads and writes indexes. Requests are answered one after the other. */
import { parentPort, workerData } from 'node:worker_threads';

import { isUnusable } from './index-file.ts';
import { IndexCache } from './index-cache.ts';
import type { ThreadOptions, ThreadReply, ThreadRequest } from './thread-messages.ts';

const indexes = new IndexCache(workerData as ThreadOptions);
const BACKGROUND: ReadonlySet<ThreadRequest['kind']> = new Set(['missing-vectors', 'add-vectors']);
const IDLE_CHECK_MS = 60_000;
const REMOVAL_CHECK_MS = 24 * 60 * 60_000;
const checks = [
  setInterval(() => indexes.closeIdle(), IDLE_CHECK_MS),
  setInterval(() => indexes.removeUnused(Date.now()), REMOVAL_CHECK_MS),
];
indexes.removeUnused(Date.now());

parentPort?.on('message', (request: ThreadRequest) => {
  if (request.kind === 'close') {
    for (const check of checks) clearInterval(check);
    indexes.close();
    parentPort?.close();
    return;
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(replyTo(request));
});

function replyTo(request: Exclude<ThreadRequest, { kind: 'close' }>): ThreadReply {
  const { id, graphId } = request;
  try {
    if (request.kind === 'delete') indexes.delete(graphId);
    if (request.kind === 'remove') indexes.remove(graphId);
    if (request.kind === 'delete' || request.kind === 'remove') return { id, value: null, open: indexes.measures };
    // The work in the background does not bring back what was removed.
    if (BACKGROUND.has(request.kind) && !indexes.has(graphId)) return { id, value: [], open: indexes.measures };
    const value = indexes.use(graphId, (index) => {
      if (request.kind === 'write') index.write(request.events);
      if (request.kind === 'progress') return index.progress();
      if (request.kind === 'search') return index.search(request.question);
      if (request.kind === 'past') return index.past(request.point);
      if (request.kind === 'counts') return index.counts(request.revision);
      if (request.kind === 'facts') return index.facts(request.ids);
      if (request.kind === 'missing-vectors') return index.missingVectors(request.limit);
      if (request.kind === 'add-vectors') index.addVectors(request.vectors);
      return null;
    });
    return { id, value, open: indexes.measures };
  } catch (error) {
    if (isUnusable(error)) {
      indexes.delete(graphId);
      return { id, unusable: String(error) };
    }
    return { id, failure: String(error) };
  }
}
