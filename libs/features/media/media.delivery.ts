import { readFile } from 'node:fs/promises';

import { documentIdOf, type DocumentPut, type Documents } from '#libs/features/documents/index.ts';
import { type Channels, interactionId, interactionToPost } from '#libs/features/channels/index.ts';
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { Blob } from '#libs/platform/blobs/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { type Process, reactor } from '#libs/platform/reactors/index.ts';

import { inspectBlob, type InspectionTools } from './file-inspector.ts';
import { InspectionError } from './file-inspection.ts';
import { mediaEntity } from './media.read.ts';
import { isSettled, type Media, type MediaEvent, type MediaState } from './media.ts';

/** Where files are given to. */
export interface Destinations {
  readonly knowledge: Pick<Knowledge, 'graph'>;
  readonly documents: Pick<Documents, 'put' | 'remove'>;
  readonly channels: Pick<Channels, 'directories' | 'interactions' | 'noteDeletedFile'>;
}

interface Parts extends Destinations, InspectionTools {}

/**
 * Gives processed files to the graph and the channel that their items name; of a deleted item, it removes the document,
 * and records the deletion in the channel.
 *
 * Guarantees: a file is posted once, the graph of a deleted item keeps no document of it, and its channel has one event of
 * the deletion, which names who deleted it.
 */
export function mediaDelivery(parts: Parts) {
  return reactor<MediaState, MediaEvent>({
    name: 'media-delivery',
    on: ['MediaProcessed.v1', 'MediaDeleted.v1'],
    process: mediaEntity.projection,
    isEnded: (state) => state !== null && isSettled(state),
    startRevision: (state) => state?.startRevision ?? null,
    async handle(_event, process) {
      const { state } = process;
      if (state === null) return [];
      if (state.deletedAt === null) return deliver(state, process, parts);
      return [...(await removeDocument(state, process, parts)), ...(await noteDeletion(state, process, parts))];
    },
    giveUp(state, { reason }) {
      // The graph must not keep facts of a deleted item without notice: the event is parked.
      if (state === null || state.deletedAt !== null) return [];
      const why = reason === 'deadline' ? 'in time' : 'for an unknown reason';
      const problem = `the knowledge graph and the channel did not get the file ${why}`;
      return [{ type: 'MediaDelivered.v1', data: { documentId: null, interactionId: null, problem } }];
    },
    limits: { concurrency: 8, stepTimeoutMs: 180_000, deadlineMs: 60 * 60_000 },
  });
}

type Delivery = Process<MediaState, MediaEvent>;

/** The id of a file at a destination, or the reason why the destination does not have it. */
type Delivered = { readonly id: EntityId | null; readonly problem: string | null };

async function deliver(media: Media, process: Delivery, parts: Parts): Promise<readonly MediaEvent[]> {
  const document = await putDocument(media, process, parts);
  const interaction = await post(media, process, parts);
  const problem = document.problem ?? interaction.problem;
  return [{ type: 'MediaDelivered.v1', data: { documentId: document.id, interactionId: interaction.id, problem } }];
}

const NOTHING: Delivered = { id: null, problem: null };

/** Types of files with a text that documents take. */
const LEARNT = new Set(['text/plain', 'text/html', 'application/pdf']);

async function putDocument(media: Media, process: Delivery, parts: Parts): Promise<Delivered> {
  const { knowledgeGraph, file, type, name, sourceUrl: url } = media;
  if (knowledgeGraph === null || file === null || type === null || !LEARNT.has(type.mimeType)) return NOTHING;
  if ((await parts.knowledge.graph(process.organizationId, knowledgeGraph)) === null) {
    return { id: null, problem: 'it was not learnt: the knowledge graph was deleted' };
  }
  try {
    const text = await textOf(file, process, parts);
    if (text === null) return NOTHING;
    const { contentType, title, bytes } = text;
    const document = documentOf(media, process, knowledgeGraph);
    const put = { ...document, name: name || (title ?? ''), contentType, url, bytes };
    await parts.documents.put(commandOf(media, process, 'document'), put);
    return { id: document.id, problem: null };
  } catch (error) {
    if (!(error instanceof InspectionError)) throw error;
    return { id: null, problem: `it was not learnt: ${error.message}` };
  }
}

function textOf(file: Blob, { organizationId, signal }: Delivery, parts: Parts) {
  return inspectBlob(
    file,
    parts,
    { wantsText: true, organizationId, signal },
    async ({ text }, { textPath }) => text && { ...text, bytes: await readFile(textPath) },
  );
}

/** The id of the media item is the external id of the document. */
function documentOf({ id: externalId }: Media, { organizationId }: Delivery, knowledgeGraph: EntityId) {
  return { id: documentIdOf(organizationId, knowledgeGraph, externalId), knowledgeGraph, externalId };
}

/** As the actor that deleted the item, not as its creator. */
async function noteDeletion(media: Media, process: Delivery, { channels }: Parts): Promise<readonly MediaEvent[]> {
  const { id: mediaId, channel, name, file, interactionId: shown, deletedBy, isToNote } = media;
  if (channel === null || deletedBy === null || !isToNote) return [];
  const deleted = { mediaId, name, hash: file?.hash ?? null, bytes: file?.bytes ?? 0, interactionId: shown };
  // A channel that is archived or gone has no further event.
  await channels.noteDeletedFile({ ...commandOf(media, process, 'deletion'), actor: deletedBy }, channel, deleted);
  return [{ type: 'MediaDeletionNoted.v1', data: {} }];
}

async function removeDocument(media: Media, process: Delivery, { documents }: Parts): Promise<readonly MediaEvent[]> {
  const { knowledgeGraph, status, mayHaveDocument } = media;
  if (!mayHaveDocument) return [];
  if (knowledgeGraph !== null) {
    const document = documentOf(media, process, knowledgeGraph);
    if (status === 'queued' || status === 'processing') {
      // Another worker may still put the document. It is put here, by the same command, so that it never is afterwards.
      const empty: DocumentPut = { ...document, name: '', contentType: 'text/plain', text: '' };
      await documents.put(commandOf(media, process, 'document'), empty);
    }
    await documents.remove(process.commandContext(), document.id);
  }
  return [{ type: 'MediaDocumentRemoved.v1', data: {} }];
}

/** Posts the file as its creator. The interaction names the item and no address: addresses of files expire. */
async function post(media: Media, process: Delivery, { channels }: Parts): Promise<Delivered> {
  const { id, channel, type, width, height, name, sourceUrl } = media;
  if (channel === null || type === null) return NOTHING;
  const meta_data = {
    media_id: id,
    mime_type: type.mimeType,
    width,
    height,
    description: name || `file.${type.format}`,
    source_url: sourceUrl,
  };
  const body = { content: [{ type: 'media' as const, meta_data, media_url: null }], complete: true };
  const context = { ...commandOf(media, process, 'post'), actor: media.creator };
  const { interaction, spanIsNew } = await interactionToPost(context, body, {
    directories: channels.directories,
    writer: 'operator',
  });
  const result = await channels.interactions.post(context, channel, interaction, { spanIsNew });
  if (result.ok) return { id: interactionId(result.ref), problem: null };
  const why = result.rejection.reason === 'archived' ? 'the channel is archived' : 'there is no such channel';
  return { id: null, problem: `it was not posted: ${why}` };
}

/** Namespace of the ids of commands. Part of the storage format: never change it. */
const COMMANDS = '3d0a6c52-5e0f-4a63-9d0c-2b8c1f7f9b64';

/** A command on a destination, the same in every attempt of all workers: its events are looked for before they are appended. */
function commandOf(
  { id, createdAt }: Media,
  process: Delivery,
  effect: 'document' | 'post' | 'deletion',
): CommandContext {
  const commandId = derivedId(COMMANDS, `${id} ${effect}`);
  return { ...process.commandContext(), commandId, repeatedSinceMs: Date.parse(createdAt) };
}
