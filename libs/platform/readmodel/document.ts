import { streamRevision, type StreamRevision } from '#libs/kernel/event.ts';

/**
 * A resource as it is stored, ready to send: its JSON bytes, and the revision of the last event that
 * changed it (its `ETag`). Stored as `<revision>\n<json>`, so that a read neither parses nor serialises.
 */
export interface Document {
  readonly revision: StreamRevision;
  readonly json: Buffer;
}

const NEWLINE = 0x0a;
const ZERO = 0x30;
const NINE = 0x39;

export function encodeDocument(revision: StreamRevision, json: string): string {
  return `${revision}\n${json}`;
}

export function decodeDocument(stored: Buffer): Document {
  let revision = 0;
  for (let at = 0; at < stored.length; at++) {
    const byte = stored[at] ?? NEWLINE;
    if (byte === NEWLINE) return { revision: streamRevision(revision), json: stored.subarray(at + 1) };
    if (byte < ZERO || byte > NINE) break;
    // Without a string for each read.
    revision = revision * 10 + (byte - ZERO);
  }
  throw new TypeError('a stored document has no revision');
}
