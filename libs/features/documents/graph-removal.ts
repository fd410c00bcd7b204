import { z } from 'zod';

import { graphEntity } from '#libs/features/knowledge/index.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';
import { type Process, reactor } from '#libs/platform/reactors/index.ts';

import type { Documents } from './document.read.ts';

/** Names and shapes are the storage format: see `document.ts`. */
const removalCodec = defineEvents({
  /** All documents of a deleted graph are deleted. */
  'GraphDocumentsDeleted.v1': z.object({ documents: z.int() }),
});

type RemovalEvent = EventOf<typeof removalCodec>;

const PAGE = 100;

/**
 * Deletes the documents of graphs that are deleted. The process of a graph has the stream `graphdocuments-<graph id>`.
 *
 * Omissions: a document that is created while its graph is being deleted may stay in lists. It is answered as missing.
 */
export function graphRemoval(documents: Documents) {
  return reactor({
    name: 'graph-documents',
    on: ['GraphDeleted.v1'],
    triggers: graphEntity.projection.codec,
    processOf: (_event, stream) => stream.slice(`${graphEntity.category}-`.length),
    process: {
      category: 'graphdocuments',
      codec: removalCodec,
      fold: { initialState: false as boolean, evolve: () => true },
    },
    isEnded: (isDone) => isDone,
    async handle(_event, process) {
      const count = await removeAll(documents, process);
      return [{ type: 'GraphDocumentsDeleted.v1', data: { documents: count } }];
    },
    giveUp: () => [],
    limits: { concurrency: 4, stepTimeoutMs: 600_000, deadlineMs: 3_600_000 },
  });
}

/** @throws Error if the list still has documents afterwards, because the read models lag */
async function removeAll(documents: Documents, process: Process<boolean, RemovalEvent>): Promise<number> {
  const page = (after: string | null) =>
    documents.states(process.organizationId, { knowledge_graph: process.id }, { size: PAGE, offset: 0, after });
  let count = 0;
  for (let found = await page(null); found.states.length > 0; found = await page(found.last)) {
    process.signal.throwIfAborted();
    await Promise.all(found.states.map(({ id }) => documents.remove(process.commandContext(id), id)));
    count += found.states.length;
  }
  if ((await page(null)).total > 0) throw new Error('the list of documents is not up to date');
  return count;
}
