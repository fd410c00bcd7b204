/* The ingestion of a document: its facts, extracted and learnt. By the reactor, or by the feature that has its content. */
import type { FactsToLearn, Knowledge } from '#libs/features/knowledge/index.ts';
import { derivedId, type EntityId, newId } from '#libs/kernel/ids.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { accept } from '#libs/kernel/decider.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { DocumentContent } from './document.content.ts';
import { type Document, type DocumentEvent, failed, type LeftOut, isSettled } from './document.ts';
import { decodeText } from './extract/charset.ts';
import {
  type Content,
  type DocumentFacts,
  type Extraction,
  ExtractionError,
  type ExtractionPool,
  type PdfText,
} from './extract/index.ts';
import { contentOf, type DocumentPut, type Documents } from './document.read.ts';

export interface IngestionParts {
  readonly knowledge: Pick<Knowledge, 'learn' | 'withdraw'>;
  readonly pool: Pick<ExtractionPool, 'readPage' | 'readPdf' | 'extractFacts'>;
}

interface Attempt {
  /** Of the commands, but for their ids. */
  readonly context: CommandContext;
  readonly signal: AbortSignal;
  /** An earlier attempt may have learnt the facts: they are looked for in the graph's stream. */
  readonly isRepeated: boolean;
  /** Whether a document that takes too long to read has failed. */
  readonly isLast: boolean;
  /** Facts of the content that were extracted already. */
  readonly facts?: DocumentFacts | null;
}

/**
 * Extracts the facts of a document that is `processing`, learns them, and withdraws those of the content before it.
 *
 * @returns the event that records what came of it
 * @throws Fault; ExtractionError for what another attempt may read
 */
export async function ingest(
  document: Document,
  content: DocumentContent,
  { knowledge, pool }: IngestionParts,
  attempt: Attempt,
): Promise<DocumentEvent> {
  const { id, knowledgeGraph: graphId, contentRevision } = document;
  if (graphId === null) throw new TypeError(`the document ${id} has no graph`);
  let extraction: Read;
  try {
    extraction = extracted(document, attempt) ?? (await extract(document, content, pool, attempt));
  } catch (error) {
    if (!(error instanceof ExtractionError) || mayPass(error, attempt)) throw error;
    return failed(error.message);
  }
  const facts = factsOf(document, extraction);
  const learnt = await knowledge.learn(commandOf(document, 'learn', attempt), graphId, [facts]);
  if (!learnt.ok) return failed('The knowledge graph was deleted');
  if (contentRevision > 0) {
    await knowledge.withdraw(commandOf(document, 'withdraw', attempt), graphId, id, contentRevision);
  }
  const { nodes, edges, passages, characters } = extraction;
  const counts = { nodes: nodes.length, edges: edges.length, passages: passages.length, characters };
  const leftOut = leftOutOf(extraction);
  const isTruncated = leftOut.some(({ what }) => what.endsWith('_over_limit'));
  return { type: 'DocumentIngested.v1', data: { ...counts, isTruncated, leftOut } };
}

type Read = Extraction & { readonly pdf?: PdfText };

function leftOutOf({ characters, truncated, pdf }: Read): LeftOut[] {
  const leftOut: LeftOut[] = characters === 0 ? [{ what: 'no_text', count: null }] : [];
  if (pdf !== undefined) {
    const { all, read, withoutText } = pdf.pages;
    if (withoutText > 0) leftOut.push({ what: 'pages_without_text', count: withoutText });
    if (read < all) leftOut.push({ what: 'pages_over_limit', count: all - read });
    else if (pdf.truncated) leftOut.push({ what: 'text_over_limit', count: null });
  }
  if (truncated) leftOut.push({ what: 'facts_over_limit', count: null });
  return leftOut;
}

/** Namespace of the ids of commands. Part of the storage format: never change it. */
const COMMANDS = 'f1f0a9b4-52f0-4a0b-93c8-6d6a1d0c7e35';

/** A command that follows from the document's present content, with the same id in every attempt. */
export function commandOf(
  { id, contentRevision, modified }: Document,
  effect: 'learn' | 'withdraw',
  { context, isRepeated }: Pick<Attempt, 'context' | 'isRepeated'>,
): CommandContext {
  const commandId = derivedId(COMMANDS, `${id}@${contentRevision} ${effect}`);
  return { ...context, commandId, repeatedSinceMs: isRepeated ? Date.parse(modified) : undefined };
}

/** Whether another attempt may succeed: the worker stops, or other documents took the time. */
function mayPass({ reason }: ExtractionError, { isLast }: Attempt): boolean {
  return reason === 'closed' || reason === 'cancelled' || (reason === 'timeout' && !isLast);
}

/** Keys and texts of facts contain what names the document. */
function extracted({ id, name, url }: Document, { facts }: Attempt): Extraction | null {
  const isSame = facts?.documentId === id && facts.name === name && facts.url === url;
  return isSame ? facts.extraction : null;
}

async function extract(
  { id, name, url, contentType }: Document,
  { body, structured }: DocumentContent,
  pool: IngestionParts['pool'],
  { context: { organizationId }, signal }: Attempt,
): Promise<Read> {
  const content = { documentId: id, name, url };
  const options = { organizationId, signal };
  switch (contentType.split(';')[0]) {
    case 'text/html': {
      const page = await pool.readPage(body, { url: url ?? 'about:blank', contentType }, options);
      const { title, text } = page;
      const read = { name: name || (title ?? ''), contentType: 'text/markdown', text } as const;
      return pool.extractFacts({ ...content, ...read, structured: page.structured }, options);
    }
    case 'application/pdf': {
      const pdf = await pool.readPdf(body, options);
      const { title, text, characters } = pdf;
      const read = { name: name || (title ?? ''), contentType: 'text/markdown', text } as const;
      const extraction = await pool.extractFacts({ ...content, ...read }, options);
      return { ...extraction, characters, pdf };
    }
    default: {
      const { text } = decodeText(body, contentType);
      const read = { contentType: textTypeOf(contentType), text };
      // Written by `put`, whose callers pass what `readPage` gave.
      const data = structured as Content['structured'];
      return pool.extractFacts({ ...content, ...read, structured: data ?? null }, options);
    }
  }
}

function textTypeOf(contentType: string): Content['contentType'] {
  const [type] = contentType.split(';');
  return type === 'text/markdown' || type === 'application/json' ? type : 'text/plain';
}

function factsOf(document: Document, { passages, nodes, edges }: Extraction): FactsToLearn {
  const { id, url, contentRevision } = document;
  // The first node is the document itself.
  const name = document.name || (nodes[0]?.name ?? '');
  return { source: { documentId: id, revision: contentRevision, name, url }, passages, nodes, edges, model: null };
}

interface IngestedPutOptions {
  readonly signal: AbortSignal;
  readonly isNew: boolean;
  readonly facts?: DocumentFacts | null;
}

/** Documents that the reactor need not read, because they were ingested here. */
const MAX_REMEMBERED = 5_000;

/**
 * Stores documents and ingests them at once, without a reactor in between: for features that have many documents.
 *
 * Guarantees: those of `Documents.put`. When `put` resolves, nothing follows from the document any longer. A document
 * whose `put` was interrupted is ingested by the next `put` of the same content, or by the reactor after a minute.
 */
export class IngestedDocuments {
  readonly #documents: Documents;
  readonly #parts: IngestionParts;
  /** The revisions of the contents that were ingested here. */
  readonly #ingested = recentlyUsed<EntityId, StreamRevision>(MAX_REMEMBERED);

  constructor(documents: Documents, parts: IngestionParts) {
    this.#documents = documents;
    this.#parts = parts;
  }

  /** Whether this process has ingested the content of that revision; false if it does not remember. */
  has(id: EntityId, contentRevision: StreamRevision): boolean {
    return this.#ingested.get(id) === contentRevision;
  }

  /**
   * @param context its command id is not used: a document that exists is not created again
   * @param put with a `crawlId`, by which the reactor knows that the document is ingested here
   * @param options `isNew`: the document is expected not to exist; `facts`: of the content, if they are known
   * @throws Fault; TypeError for a document of another owner; ExtractionError if `signal` aborts
   */
  async put(context: CommandContext, put: DocumentPut, { isNew, ...options }: IngestedPutOptions): Promise<void> {
    const content = contentOf(put);
    const result = await this.#documents.put({ ...context, commandId: newId(), isNew }, put, content);
    if (!result.ok) throw new TypeError(`the document ${put.id} has another owner`);
    const { entity: document, isChanged } = result;
    if (isSettled(document)) return;
    const attempt = { context, ...options, isRepeated: !isChanged, isLast: true };
    const ingested = await ingest(document, content, this.#parts, attempt);
    await this.#documents.run({ ...context, commandId: newId() }, put.id, (state) => {
      const isCurrent = state?.contentRevision === document.contentRevision && !isSettled(state);
      return isCurrent ? accept(ingested) : accept();
    });
    this.#ingested.set(put.id, document.contentRevision);
  }
}
