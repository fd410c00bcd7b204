/** The thread that reads and writes the indexes of messages, one for each organization. */
import { workerData } from 'node:worker_threads';

import { IndexCache, type IndexCacheOptions, serveIndexes } from '#libs/platform/textindex/index.ts';

import type { ChannelChanges } from './message-file.ts';
import { MessageIndex, type MessageQuestion, TooManyMatches } from './message-index.ts';

export type MessageTask = { readonly organizationId: string } & (
  | { readonly kind: 'stale'; readonly heads: readonly (readonly [id: string, revision: number])[] }
  | { readonly kind: 'write'; readonly changes: ChannelChanges }
  /** Null for a query that reads too much. */
  | { readonly kind: 'search'; readonly question: MessageQuestion }
  /** Deletes the file: it is built again. */
  | { readonly kind: 'delete' }
);

const indexes = new IndexCache(workerData as IndexCacheOptions, {
  endings: ['sqlite'],
  open: ([path]) => new MessageIndex(path),
});

serveIndexes(indexes, ({ organizationId }: MessageTask) => organizationId, answer);

function answer(task: MessageTask): unknown {
  if (task.kind === 'delete') return indexes.delete(task.organizationId);
  return indexes.use(task.organizationId, (index) => {
    if (task.kind === 'stale') return index.stale(task.heads);
    if (task.kind === 'write') return index.write(task.changes);
    try {
      return index.search(task.question);
    } catch (error) {
      if (error instanceof TooManyMatches) return null;
      throw error;
    }
  });
}
