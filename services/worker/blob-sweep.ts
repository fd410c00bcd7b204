import { UPLOAD_VALID_MS } from '#libs/features/media/index.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { type BackgroundJob, pause, startBackgroundJob, unlessAborted } from '#libs/platform/lifecycle/index.ts';
import type { BlobReferences, Platform } from '#libs/platform/runtime/index.ts';

const DAY_MS = 24 * 60 * 60_000;
/** No event names the parts of an upload that can be continued. Between a `put` and its event are seconds otherwise. */
const SAFE_AGE_MS = UPLOAD_VALID_MS + DAY_MS;
/** After a start, or a failed sweep: five minutes to an hour, so that workers which start together do not sweep together. */
const FIRST_MS = { least: 5 * 60_000, most: 60 * 60_000 };

interface SweepOptions {
  /** Where events name blobs. All of it must be known: what no event here names is removed. */
  readonly references: readonly BlobReferences[];
  /** Blobs that were put since are kept, in Unix milliseconds. Default: two days ago. */
  readonly putBeforeMs?: number;
  readonly signal: AbortSignal;
}

interface Swept {
  /** Blobs that an event names, or that are too young. */
  readonly kept: number;
  readonly removed: number;
  readonly removedBytes: number;
}

/**
 * Removes the blobs that no event names, and those of entities that have not needed them for as long. Decided on the
 * log, whatever the read models hold. Processes may sweep at the same time.
 *
 * @throws `Fault` `store_unavailable`; the reason of the signal; Error for a log that names no blob at all
 */
export async function sweepBlobs(
  { feed, blobs }: Pick<Platform, 'feed' | 'blobs'>,
  { references, putBeforeMs = Date.now() - SAFE_AGE_MS, signal }: SweepOptions,
): Promise<Swept> {
  // 1. Entities that have released their blobs.
  const events = () => eventsOf(feed, references, signal);
  const releasing = new Set(references.flatMap(({ releasedBy }) => releasedBy));
  const released = new Set<string>();
  for await (const { type, stream, createdMs } of events()) {
    if (releasing.has(type) && createdMs < putBeforeMs) released.add(stream);
  }

  // 2. What all others name, in whatever field, so that events of newer versions count as well. After the time from which
  // blobs are kept, so that the event of each older blob is in the log by now.
  const named = new HashSet();
  let names = 0;
  for await (const { stream, data } of events()) {
    for (const [hash] of JSON.stringify(data).matchAll(/\b[0-9a-f]{64}\b/g)) {
      names += 1;
      if (!released.has(stream)) named.add(hash);
    }
  }

  // 3. All other blobs.
  const swept = { kept: 0, removed: 0, removedBytes: 0 };
  for await (const hash of blobs.list()) {
    signal.throwIfAborted();
    if (names === 0) throw new Error('no event names a file: this is not the log that the files belong to');
    const bytes = named.has(hash) ? null : await blobs.remove(hash, { putBeforeMs });
    if (bytes === null) swept.kept += 1;
    else {
      swept.removed += 1;
      swept.removedBytes += bytes;
    }
  }
  return swept;
}

/** All events of the categories until now. The feed waits while the event store is away. */
async function* eventsOf(
  feed: Platform['feed'],
  references: readonly BlobReferences[],
  signal: AbortSignal,
): AsyncGenerator<StoredEvent> {
  const streamPrefixes = references.map(({ category }) => `${category}-`);
  for await (const item of feed.subscribe({ from: 'start', streamPrefixes, signal })) {
    if (item.kind === 'events') yield* item.events;
    if (item.kind === 'caught-up') return;
  }
  // Without the rest of the log, nothing may be removed.
  signal.throwIfAborted();
  throw new Error('the feed of the log has ended');
}

/** Hashes in 16 MiB, by 27 of their bits. Of a million hashes, it takes 7 in 1,000 others for one of them. */
class HashSet {
  readonly #bits = new Uint8Array(2 ** 24);

  add(hash: string): void {
    const at = bitOf(hash);
    this.#bits[at >>> 3]! |= 1 << (at & 7);
  }

  has(hash: string): boolean {
    const at = bitOf(hash);
    return (this.#bits[at >>> 3]! & (1 << (at & 7))) !== 0;
  }
}

function bitOf(hash: string): number {
  return Number.parseInt(hash.slice(0, 8), 16) >>> 5;
}

/** Sweeps once a day, at first soon after the start. */
export function startBlobSweeps(
  platform: Pick<Platform, 'feed' | 'blobs' | 'log' | 'metrics'>,
  references: readonly BlobReferences[],
  logChecked: Promise<void>,
): BackgroundJob {
  const { log, metrics } = platform;
  const sweeps = metrics.counter('blob_sweeps_total', 'Completed searches for files that nothing names');
  const removed = metrics.counter('blobs_removed_total', 'Files that were removed because nothing names them');
  const bytes = metrics.counter('blobs_removed_bytes_total', 'Bytes of these files');
  return startBackgroundJob({
    name: 'sweep of files',
    log,
    async run(signal) {
      await unlessAborted(logChecked, signal);
      await pause(FIRST_MS.least + Math.random() * (FIRST_MS.most - FIRST_MS.least), signal);
      while (!signal.aborted) {
        const swept = await sweepBlobs(platform, { references, signal });
        sweeps.add();
        removed.add({}, swept.removed);
        bytes.add({}, swept.removedBytes);
        log.info(swept, 'files: swept');
        await pause(DAY_MS, signal);
      }
    },
  });
}
