/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { Actor, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `media-<id>`. The files are blobs, which are written before the events that name them. */
export const MEDIA = 'media';

/** A blob: `hash` is the SHA-256 of its content, in hex. */
const blob = z.object({ hash: z.string(), bytes: z.int() });

const fileType = z.object({
  /** Of the content, whatever its sender called it: `image/png`. */
  mimeType: z.string(),
  /** Usual extension of such files, without a dot. */
  format: z.string(),
  /** `image`, `video`, `audio`, `document`, `text`, `archive` or `other`. */
  resourceType: z.string(),
});

const preview = blob.extend({ mimeType: z.string(), width: z.int(), height: z.int() });

export const mediaCodec = defineEvents({
  'MediaCreated.v1': z.object({
    id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    /** Where the file is fetched from; null for an upload, and for an item without a file. */
    sourceUrl: z.string().nullable(),
    /** The file that was uploaded. */
    file: blob.nullable(),
    knowledgeGraph: z.string().nullable(),
    channel: z.string().nullable(),
    message: z.string().nullable(),
  }),
  'MediaProcessingStarted.v1': z.object({}),
  'MediaProcessed.v1': z.object({
    file: blob,
    type: fileType,
    /** As it is shown: of an image or a video in pixels, of the first page of a PDF in points; 0 if not measured. */
    width: z.int(),
    height: z.int(),
    /** Of a PDF. */
    pages: z.int().nullable().default(null),
    /** Of audio and video. */
    durationMs: z.int().nullable().default(null),
    /** An image, or the start of a text, whose width and height are 0. */
    preview: preview.nullable(),
  }),
  'MediaFailed.v1': z.object({
    reason: z.string(),
    /** The file, if there is one. */
    file: blob.nullable(),
    /** Null if it was not found out. */
    type: fileType.nullable(),
  }),
  /** Follows `MediaProcessed`, if the item names a graph or a channel. */
  'MediaDelivered.v1': z.object({
    /** The document of the graph; null for a file without text. */
    documentId: z.string().nullable(),
    /** The interaction that shows the file in the channel. */
    interactionId: z.string().nullable(),
    /** Why the graph or the channel does not have the file. */
    problem: z.string().nullable(),
  }),
  'MediaDeleted.v1': z.object({}),
  /** Follows `MediaDeleted`, if the item names a graph: it has no document of the item any longer. */
  'MediaDocumentRemoved.v1': z.object({}),
  /** Follows `MediaDeleted`, if the item names a channel: the channel has an event of the deletion. */
  'MediaDeletionNoted.v1': z.object({}),
});

export type MediaEvent = EventOf<typeof mediaCodec>;
export type MediaCreated = Extract<MediaEvent, { type: 'MediaCreated.v1' }>['data'];
export type MediaProcessed = Extract<MediaEvent, { type: 'MediaProcessed.v1' }>['data'];
export type FileType = MediaProcessed['type'];
export type Preview = NonNullable<MediaProcessed['preview']>;

export type MediaStatus = 'queued' | 'processing' | 'ready' | 'failed';

export type Media = MediaCreated &
  EntityState & {
    /** The user or service that created it. */
    readonly creator: Actor;
    readonly status: MediaStatus;
    /** Why the processing failed. */
    readonly failure: string | null;
    readonly type: FileType | null;
    readonly width: number;
    readonly height: number;
    readonly pages: number | null;
    readonly durationMs: number | null;
    readonly preview: Preview | null;
    readonly documentId: EntityId | null;
    readonly interactionId: EntityId | null;
    /** Its graph may have a document of it. */
    readonly mayHaveDocument: boolean;
    /** Its channel has no event of its deletion yet. */
    readonly isToNote: boolean;
    /** Set with `deletedAt`. */
    readonly deletedBy: Actor | null;
    /** A deleted item is answered as a missing one. */
    readonly deletedAt: Timestamp | null;
    /** Revision of the event by which a worker started; null until then. */
    readonly startRevision: StreamRevision | null;
  };

/** `null` until the item is created. */
export type MediaState = Media | null;

export const mediaFold: Fold<MediaState, MediaEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'MediaCreated.v1') {
      const { file, sourceUrl, knowledgeGraph } = event.data;
      const hasFile = file !== null || sourceUrl !== null;
      return {
        ...event.data,
        ...createdBy(event),
        creator: event.metadata.actor,
        // An item without a file has nothing to wait for.
        status: hasFile ? 'queued' : 'ready',
        mayHaveDocument: hasFile && knowledgeGraph !== null,
        failure: null,
        type: null,
        width: 0,
        height: 0,
        pages: null,
        durationMs: null,
        preview: null,
        documentId: null,
        interactionId: null,
        isToNote: false,
        deletedBy: null,
        deletedAt: null,
        startRevision: null,
      };
    }
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    switch (event.type) {
      case 'MediaProcessingStarted.v1':
        return { ...changed, status: 'processing', startRevision: event.revision };
      case 'MediaProcessed.v1':
        return { ...changed, ...event.data, status: hasDestination(state) ? 'processing' : 'ready' };
      case 'MediaDelivered.v1': {
        const { problem: failure, ...delivered } = event.data;
        return { ...changed, ...delivered, status: failure === null ? 'ready' : 'failed', failure };
      }
      case 'MediaFailed.v1':
        return {
          ...changed,
          status: 'failed',
          failure: event.data.reason,
          file: event.data.file,
          type: event.data.type,
        };
      case 'MediaDeleted.v1':
        // Its removal starts anew.
        return {
          ...changed,
          deletedAt: changed.modified,
          deletedBy: event.metadata.actor,
          isToNote: state.channel !== null,
          startRevision: null,
        };
      case 'MediaDocumentRemoved.v1':
        return { ...changed, mayHaveDocument: false };
      case 'MediaDeletionNoted.v1':
        return { ...changed, isToNote: false };
    }
  },
};

/** Whether the file is given to a graph or a channel once it is processed. */
function hasDestination({ knowledgeGraph, channel }: Media): boolean {
  return knowledgeGraph !== null || channel !== null;
}

/** Whether the file is processed, as far as it ever is. */
export function isProcessed(media: Media): boolean {
  return media.deletedAt !== null || media.type !== null || isSettled(media);
}

/** Whether nothing follows any longer. */
export function isSettled({ status, deletedAt, mayHaveDocument, isToNote }: Media): boolean {
  return deletedAt === null ? status === 'ready' || status === 'failed' : !mayHaveDocument && !isToNote;
}

/** The status as the API shows it. */
export function statusLabel({ status, failure }: Pick<Media, 'status' | 'failure'>): string {
  switch (status) {
    case 'queued':
      return 'Queued';
    case 'processing':
      return 'Processing';
    case 'ready':
      return 'Ready';
    case 'failed':
      return `Failed: ${failure}`;
  }
}

export function decideDelete(media: Media): Decision<MediaEvent, never> {
  return media.deletedAt === null ? accept({ type: 'MediaDeleted.v1', data: {} }) : accept();
}
