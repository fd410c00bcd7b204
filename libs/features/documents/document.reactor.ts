import { z } from 'zod';
import { systemClock } from '#libs/kernel/clock.ts';
import { type Process, reactor } from '#libs/platform/reactors/index.ts';
import { graphEntity } from '#libs/features/knowledge/index.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';
import type { DocumentContents } from './document.content.ts';
import { type Document, type DocumentEvent, type DocumentState, failed, isSettled } from './document.ts';
import { documentEntity, type Documents } from './document.read.ts';
import { commandOf, ingest, type IngestionParts, type IngestedDocuments } from './ingestion.ts';

export interface ReactorParts extends IngestionParts {
  readonly contents: Pick<DocumentContents, 'read'>;
  readonly ingestedDocuments: Pick<IngestedDocuments, 'has'>;
}

type Ingestion = Process<DocumentState, DocumentEvent>;

/** Longer than a crawl takes from the creation of a document to the last of its facts. */
const TAKE_OVER_MS = 60_000;
/** Most documents of crawls are ingested by then. */
const CRAWL_DELAY_MS = 2_000;

/**
 * Extracts the facts of documents into their graphs, and withdraws those of former content and of deleted documents.
 *
 * Guarantees: the facts of each content are learnt before the document is `Ready`, and those of former content are
 * withdrawn after that. A worker that dies repeats the step, which learns the same facts: their ids are derived from
 * what they state.
 */
export function documentIngestion(parts: ReactorParts) {
  return reactor<DocumentState, DocumentEvent>({
    name: 'document-ingestion',
    on: ['DocumentCreated.v1', 'DocumentChanged.v1', 'DocumentDeleted.v1'],
    process: documentEntity.projection,
    isEnded: (state) => state !== null && isSettled(state),
    startRevision: (state) => state?.startRevision ?? null,
    delayMs: ({ type, data }) => (type === 'DocumentCreated.v1' && data.crawlId !== null ? CRAWL_DELAY_MS : 0),
    hasEnded: ({ revision }, id) => parts.ingestedDocuments.has(id, revision),
    handle(_event, process) {
      const { state } = process;
      if (state === null) return [];
      return state.status === 'deleted' ? withdraw(process, state, parts) : ingestContent(process, state, parts);
    },
    giveUp(state, { reason }) {
      // Facts of a deleted document must not stay without notice: the event is parked.
      if (state === null || state.status === 'deleted') return [];
      return [failed(reason === 'deadline' ? 'It was not processed in time' : 'It cannot be processed')];
    },
    limits: { concurrency: 8, perOrganization: 2, stepTimeoutMs: 120_000, maxAttempts: 4 },
  });
}

async function ingestContent(
  process: Ingestion,
  document: Document,
  { contents, ...parts }: ReactorParts,
): Promise<readonly DocumentEvent[]> {
  if (document.knowledgeGraph === null || isIngestedElsewhere(document)) return [];
  // Show that it is processed. An earlier attempt may have left that behind, and facts as well; so may a crawl.
  const isStarted = document.status === 'processing';
  if (!isStarted) await process.recordIntent({ type: 'DocumentIngestionStarted.v1', data: {} });
  const isRepeated = isStarted || document.crawlId !== null;
  const content = await contents.read(document.id, document.hash);
  const { signal, attempt } = process;
  const context = process.commandContext();
  return [await ingest(document, content, parts, { context, signal, isRepeated, isLast: attempt > 1 })];
}

async function withdraw(
  process: Ingestion,
  document: Document,
  { knowledge }: ReactorParts,
): Promise<readonly DocumentEvent[]> {
  const { id, knowledgeGraph, contentRevision } = document;
  // Not of all content: the document may be created again meanwhile. A graph that is deleted as well has no facts.
  const context = commandOf(document, 'withdraw', { context: process.commandContext(), isRepeated: true });
  if (knowledgeGraph !== null) await knowledge.withdraw(context, knowledgeGraph, id, contentRevision);
  return [{ type: 'DocumentFactsWithdrawn.v1', data: {} }];
}

/** A crawl ingests its pages itself; what it leaves behind when it is interrupted is ingested here. */
function isIngestedElsewhere({ crawlId, modified }: Document): boolean {
  if (crawlId === null) return false;
  return Math.abs(Date.parse(systemClock.now()) - Date.parse(modified)) < TAKE_OVER_MS;
}

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
