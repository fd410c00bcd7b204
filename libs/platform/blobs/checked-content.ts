/** The content of a blob as a storage returns it, compared with what is known of the blob. */
import { createHash } from 'node:crypto';
import { addAbortSignal, Readable } from 'node:stream';

import { Fault } from '#libs/kernel/faults.ts';
import { pause, retry } from '#libs/platform/lifecycle/index.ts';

import { faultOf, OtherContent } from './blob-faults.ts';
import type { Blob, ByteRange } from './blob-store.ts';

/** The storage says that it has no such blob. */
export class NoSuchBlob extends Error {
  override readonly name = 'NoSuchBlob';
}

export function nullIfNoSuchBlob(error: unknown): null {
  if (error instanceof NoSuchBlob) return null;
  throw error;
}

export function wholeOf({ bytes }: Blob): ByteRange {
  return { start: 0, end: bytes - 1 };
}

export interface BlobSource {
  /** Where the content is, for operators. */
  readonly name: string;
  /** Of waiting for the storage, in which a least number of bytes must arrive. Default: any. */
  readonly rateWindowMs?: number;
  /**
   * Opens the content from `start` to `end`. It may turn out to be shorter or longer.
   *
   * @throws NoSuchBlob; OtherContent; the errors of the storage
   */
  open(range: ByteRange): Promise<Readable>;
}

/** Of a connection that breaks, and of a content that differs. */
const ATTEMPTS = 3;
/** An answer of more bytes is no failed attempt. Stores close connections whose readers pause. */
const PROGRESS_BYTES = 64 * 1024;
const LEAST_BYTES_PER_SECOND = 1_024;

/**
 * A content as a stream. It is read again if its beginning differs, and from where it broke off if it breaks off. The
 * last chunk is passed on once the whole is known to be right: a reader of another content gets an error, never an end.
 * The hash is compared where the range is the whole blob, the length always.
 *
 * @throws NoSuchBlob; OtherContent; the errors of the storage
 */
export async function checkedStream(source: BlobSource, blob: Blob, range: ByteRange): Promise<Readable> {
  return rereading(async () => {
    const closing = new AbortController();
    const content = checkedContent(source, blob, range, closing.signal);
    // Its beginning is there before the reader starts to answer a client.
    const first = await content.next();
    const stream = Readable.from(resumed(first, content), { objectMode: false });
    const destroy = stream._destroy;
    stream._destroy = (error, callback) => {
      // Ends a wait for the storage at once.
      closing.abort(new Error('the reader has gone'));
      destroy.call(stream, error, callback);
    };
    return stream;
  });
}

/** Repeats `read`, which reads blobs, while the storage returns another content than theirs. Bounded. */
export function rereading<Result>(read: () => Promise<Result>): Promise<Result> {
  return retry(read, {
    onFailure(error, failures) {
      const isOther = error instanceof OtherContent || (error instanceof Fault && error.cause instanceof OtherContent);
      if (!isOther || failures >= ATTEMPTS) throw error;
    },
  });
}

async function* resumed<T>(first: IteratorResult<T, void>, others: AsyncGenerator<T, void>): AsyncGenerator<T> {
  try {
    if (!first.done) yield first.value;
    yield* others;
  } catch (error) {
    throw faultOf(error);
  } finally {
    await others.return();
  }
}

/** As {@link checkedStream}, but for another content, which is an error at once. */
export async function* checkedContent(
  source: BlobSource,
  { hash, bytes }: Blob,
  { start, end }: ByteRange,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<Uint8Array, void> {
  const digest = start === 0 && end === bytes - 1 ? createHash('sha256') : null;
  let position = start;
  let held: Uint8Array | null = null;
  for (let failures = 0; position <= end;) {
    const from = position;
    try {
      const content = addAbortSignal(signal, await source.open({ start: position, end }));
      for await (const chunk of fastEnough(content, source.rateWindowMs)) {
        position += chunk.length;
        if (position > end + 1) throw new OtherContent(`${source.name} has more than the ${bytes} bytes of its file`);
        digest?.update(chunk);
        if (held !== null) yield held;
        held = chunk;
      }
      if (position <= end) throw new Error(`${source.name} broke off at byte ${position} of ${bytes}`);
    } catch (error) {
      failures = position - from > PROGRESS_BYTES ? 1 : failures + 1;
      const isFinal = error instanceof NoSuchBlob || error instanceof OtherContent;
      if (isFinal || failures >= ATTEMPTS || signal.aborted) throw error;
      await pause(100 * failures, signal);
    }
  }
  if (digest !== null && digest.digest('hex') !== hash) {
    throw new OtherContent(`${source.name} has ${bytes} bytes, and another SHA-256 than its name`);
  }
  if (held !== null) yield held;
}

/** Fails if the storage is too slow. Time that the reader takes does not count. */
async function* fastEnough(content: Readable, windowMs = Infinity): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let waitedMs = 0;
  let askedAt = performance.now();
  for await (const chunk of content as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    waitedMs += performance.now() - askedAt;
    if (waitedMs > windowMs) {
      const isTooSlow = bytes < (waitedMs / 1_000) * LEAST_BYTES_PER_SECOND;
      if (isTooSlow) throw new Error(`the store sends less than ${LEAST_BYTES_PER_SECOND} bytes a second`);
      bytes = waitedMs = 0;
    }
    yield chunk;
    askedAt = performance.now();
  }
}
