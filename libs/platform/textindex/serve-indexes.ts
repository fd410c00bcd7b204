import { parentPort } from 'node:worker_threads';

import type { IndexCache, OpenIndex } from './index-cache.ts';
import { isUnusable } from './index-file.ts';
import type { ThreadReply, ThreadRequest } from './thread-client.ts';

const IDLE_CHECK_MS = 60_000;
const REMOVAL_CHECK_MS = 24 * 60 * 60_000;

/**
 * Serves the tasks of a `SearchThread` in this thread, one after the other. A file that is unusable is deleted.
 *
 * @param indexOf the index of a task
 */
export function serveIndexes<Index extends OpenIndex, Task extends object>(
  indexes: IndexCache<Index>,
  indexOf: (task: Task) => string,
  answer: (task: Task) => unknown,
): void {
  const checks = [
    setInterval(() => indexes.closeIdle(), IDLE_CHECK_MS),
    setInterval(() => indexes.removeUnused(Date.now()), REMOVAL_CHECK_MS),
  ];
  indexes.removeUnused(Date.now());
  const replyTo = (request: Task & { readonly id: number }): ThreadReply => {
    const { id } = request;
    try {
      return { id, value: answer(request), open: indexes.measures };
    } catch (error) {
      if (!isUnusable(error)) return { id, failure: String(error) };
      indexes.delete(indexOf(request));
      return { id, unusable: String(error) };
    }
  };
  parentPort?.on('message', (request: ThreadRequest<Task>) => {
    if ('id' in request) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      parentPort?.postMessage(replyTo(request));
      return;
    }
    for (const check of checks) clearInterval(check);
    indexes.close();
    parentPort?.close();
  });
}
