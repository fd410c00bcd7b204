import { createReadStream } from 'node:fs';

import { type Blob, type BlobStore, BlobTooLarge } from '#libs/platform/blobs/index.ts';
import { type Fetcher, FetchError } from '#libs/platform/fetch/index.ts';
import { type Process, reactor } from '#libs/platform/reactors/index.ts';

import { inspectBlob, type InspectionTools } from './file-inspector.ts';
import { type Inspected, InspectionError } from './file-inspection.ts';
import { mediaEntity } from './media.read.ts';
import { type FileType, isProcessed, type Media, type MediaEvent, type MediaState, type Preview } from './media.ts';
import { MAX_FILE_BYTES } from './uploads.ts';

const FETCH_TIMEOUT_MS = 120_000;
const LEAST_BYTES_PER_SECOND = 1_024;
/** Fetches that fail for reasons which may pass. */
const FETCH_ATTEMPTS = 3;

export interface MediaTools extends InspectionTools {
  readonly fetcher: Pick<Fetcher, 'open'>;
  readonly blobs: BlobStore;
}

type Processing = Process<MediaState, MediaEvent>;

/**
 * Fetches the files of media items, finds out their type and makes previews.
 *
 * Guarantees: each item ends, as `Ready` or `Failed`, and blobs are stored before the event that names them. A worker
 * that dies repeats the step, which stores the same blobs.
 */
export function mediaProcessing(tools: MediaTools) {
  return reactor<MediaState, MediaEvent>({
    name: 'media-processing',
    on: ['MediaCreated.v1'],
    process: mediaEntity.projection,
    isEnded: (state) => state !== null && isProcessed(state),
    startRevision: (state) => state?.startRevision ?? null,
    async handle(_event, process) {
      const { state } = process;
      if (state === null) return [];
      if (state.status === 'queued') await process.recordIntent({ type: 'MediaProcessingStarted.v1', data: {} });
      return processed(state, process, tools);
    },
    giveUp(state, { reason }) {
      const why = reason === 'deadline' ? 'it was not processed in time' : 'it cannot be processed';
      return [failed(why, state?.file ?? null)];
    },
    // Uploads do not wait for files that are fetched, nor these for others from a slow server.
    laneOf: ({ type, data }) => (type === 'MediaCreated.v1' && data.file === null ? 'fetch' : 'upload'),
    resourceOf: ({ type, data }) => (type === 'MediaCreated.v1' ? hostOf(data.sourceUrl) : null),
    limits: {
      concurrency: 16,
      perOrganization: 6,
      perResource: 3,
      stepTimeoutMs: FETCH_TIMEOUT_MS + 180_000,
      maxAttempts: 5,
      deadlineMs: 60 * 60_000,
    },
  });
}

async function processed(media: Media, process: Processing, tools: MediaTools): Promise<readonly MediaEvent[]> {
  // 1. The file: uploaded, or fetched now.
  let file: Blob;
  try {
    file = media.file ?? (await fetchFile(media.sourceUrl ?? '', process, tools));
  } catch (error) {
    if (!(error instanceof FetchFailed) || (error.mayPass && process.attempt < FETCH_ATTEMPTS)) throw error;
    return [failed(error.message)];
  }

  // 2. Its type, measures and preview.
  try {
    const { text: _text, ...found } = await inspect(file, process, tools);
    return [{ type: 'MediaProcessed.v1', data: { file, ...found } }];
  } catch (error) {
    if (!(error instanceof InspectionError)) throw error;
    return [failed(error.message, file, error.type)];
  }
}

function failed(reason: string, file: Blob | null = null, type: FileType | null = null): MediaEvent {
  return { type: 'MediaFailed.v1', data: { reason, file, type } };
}

function hostOf(url: string | null): string | null {
  return url !== null && URL.canParse(url) ? new URL(url).host : null;
}

/** The message is a sentence without a full stop, for users. */
class FetchFailed extends Error {
  override readonly name = 'FetchFailed';
  readonly mayPass: boolean;

  constructor(message: string, mayPass: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayPass = mayPass;
  }
}

const PASSING = new Set<FetchError['reason']>([
  'connect_failed',
  'timeout',
  'too_slow',
  'disconnected',
  'name_not_found',
]);

/** @throws FetchFailed; `Fault` `store_unavailable`; the reason of the signal */
async function fetchFile(
  url: string,
  { signal, organizationId }: Processing,
  { fetcher, blobs }: MediaTools,
): Promise<Blob> {
  try {
    const limits = { maxBytes: MAX_FILE_BYTES, timeoutMs: FETCH_TIMEOUT_MS };
    const shared = { group: organizationId, leastBytesPerSecond: LEAST_BYTES_PER_SECOND };
    const { status, body } = await fetcher.open(url, { ...limits, ...shared, signal });
    if (status >= 200 && status < 300) return await blobs.put(body, limits);
    body.on('error', () => undefined).destroy();
    throw new FetchFailed(`the server answered ${status}`, status >= 500 || status === 429);
  } catch (error) {
    if (error instanceof BlobTooLarge) throw new FetchFailed(TOO_LARGE, false);
    if (!(error instanceof FetchError)) throw error;
    const message = error.reason === 'too_large' ? TOO_LARGE : error.message;
    throw new FetchFailed(message, PASSING.has(error.reason), error);
  }
}

const TOO_LARGE = 'the file is larger than 100 MiB';

type WithPreview = Omit<Inspected, 'preview'> & { readonly preview: Preview | null };

function inspect(file: Blob, { organizationId, signal }: Processing, tools: MediaTools): Promise<WithPreview> {
  return inspectBlob(file, tools, { organizationId, signal }, async (found, { previewPath }) => {
    if (found.preview === null) return { ...found, preview: null };
    const blob = await tools.blobs.put(createReadStream(previewPath), { maxBytes: MAX_FILE_BYTES });
    return { ...found, preview: { ...blob, ...found.preview } };
  });
}
