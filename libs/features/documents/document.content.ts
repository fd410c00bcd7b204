/*
 * The content of documents, in streams of their own: `content-<document id>-<hash>`. Names and shapes of the events are
 * the storage format, as in `document.ts`.
 */
import { createHash } from 'node:crypto';

import { z } from 'zod';

import { streamRevision } from '#libs/kernel/event.ts';
import { CorruptEventError, faultAfterWrite } from '#libs/kernel/faults.ts';
import { derivedId, type EntityId, eventIdOf } from '#libs/kernel/ids.ts';
import { type CommandContext, type CommandStores, metadataOf } from '#libs/platform/commands/index.ts';
import { defineEvents, encodeMetadata } from '#libs/platform/eventstore/index.ts';
import { appendExactly } from '#libs/platform/streams/index.ts';

/** Largest text or file of a document, in bytes. */
export const MAX_DOCUMENT_BYTES = 5 * 1024 * 1024;

/** 512 KiB as base64: an append, and a message of Kafka, may have 1 MiB. */
const PART_BYTES = 384 * 1024;

export const contentCodec = defineEvents({
  'DocumentContentAdded.v1': z.object({ of: z.enum(['body', 'structured']), base64: z.string() }),
});

/** The source of an extraction. */
export interface DocumentContent {
  /** The text in UTF-8, or the file. */
  readonly body: Uint8Array;
  /** Structured data that came with the text, such as the JSON-LD of a page. */
  readonly structured: object | null;
}

/** SHA-256 in hex, of the body and the structured data. */
export function hashOf({ body, structured }: DocumentContent): string {
  const hash = createHash('sha256').update(body);
  // Without structured data, the hash is the one that other tools compute for the file.
  if (structured !== null) hash.update(`\0${JSON.stringify(structured)}`);
  return hash.digest('hex');
}

/** Namespace of the ids of the events. Part of the storage format: never change it. */
const PARTS = '8e4b7a0c-6f55-4d0e-8f0c-5a7d8f7b1c92';

/**
 * Stores contents in the log.
 *
 * Guarantees: a content is durable when `write` resolves, and `read` gives exactly what was written. Writing a content
 * again, also at the same time in several processes or after an interruption, stores it once.
 *
 * Omissions: a content that no document names, because its writer died in between, stays in the log.
 */
export class DocumentContents {
  readonly #stores: Pick<CommandStores, 'store' | 'clock'>;

  constructor(stores: Pick<CommandStores, 'store' | 'clock'>) {
    this.#stores = stores;
  }

  /**
   * @returns the hash that the content is found by
   * @throws `Fault` of `EventStore.append`
   */
  async write(context: CommandContext, documentId: EntityId, content: DocumentContent): Promise<string> {
    const hash = hashOf(content);
    const stream = streamOf(documentId, hash);
    const source = derivedId(PARTS, stream);
    const metadata = encodeMetadata({ ...metadataOf(context), at: this.#stores.clock.corrected(context.at) });
    for (const [index, data] of [...partsOf(content)].entries()) {
      const part = {
        id: eventIdOf(source, index),
        type: 'DocumentContentAdded.v1',
        data: contentCodec.encode({ type: 'DocumentContentAdded.v1', data }),
        revision: streamRevision(index),
        metadata,
      };
      try {
        // A part that is already there at the same revision is acknowledged again.
        const appended = await appendExactly(this.#stores, stream, streamRevision(index - 1), [part]);
        if (appended === null) throw new CorruptEventError(`${stream}@${index} is not the content of its name`);
      } catch (error) {
        throw index === 0 ? error : faultAfterWrite(error);
      }
    }
    return hash;
  }

  /**
   * @throws `Fault` `store_unavailable`
   * @throws CorruptEventError if the stream does not hold the content of its name
   */
  async read(documentId: EntityId, hash: string): Promise<DocumentContent> {
    const stream = streamOf(documentId, hash);
    const parts = { body: [] as Buffer[], structured: [] as Buffer[] };
    for await (const stored of this.#stores.store.readStream(stream)) {
      const event = contentCodec.decode(stored);
      if (event !== null) parts[event.data.of].push(Buffer.from(event.data.base64, 'base64'));
    }
    const structured = parts.structured.length === 0 ? null : parseObject(Buffer.concat(parts.structured));
    const content = { body: Buffer.concat(parts.body), structured };
    if (hashOf(content) !== hash) throw new CorruptEventError(`${stream} does not hold the content of its name`);
    return content;
  }
}

function streamOf(documentId: EntityId, hash: string): string {
  return `content-${documentId}-${hash}`;
}

function* partsOf({ body, structured }: DocumentContent) {
  yield* slices('body', body);
  if (structured !== null) yield* slices('structured', Buffer.from(JSON.stringify(structured)));
}

function* slices(of: 'body' | 'structured', bytes: Uint8Array) {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // An empty body has one part as well: the stream of every content exists.
  for (let from = 0; from === 0 || from < all.length; from += PART_BYTES) {
    yield { of, base64: all.subarray(from, from + PART_BYTES).toString('base64') };
  }
}

function parseObject(json: Buffer): object {
  const value: unknown = JSON.parse(json.toString());
  return Object(value) as object;
}
