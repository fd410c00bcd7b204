import type { StreamRevision } from '#libs/kernel/event.ts';
import { streamRevision } from '#libs/kernel/event.ts';

/**
 * A resource as it is stored, ready to send: its JSON bytes, and the revision of the last event that
 * changed it (its `ETag`). Stored as `<revision>\n<json>`, so that a read neither parses nor serialises.
 */
export interface Document {
  readonly revision: StreamRevision;
  readonly json: Buffer;
}

const NEWLINE = 0x0a;

export function encodeDocument(revision: StreamRevision, resource: object): string {
  return `${revision}\n${JSON.stringify(resource)}`;
}

export function decodeDocument(stored: Buffer): Document {
  const end = stored.indexOf(NEWLINE);
  if (end < 0) throw new TypeError('a stored document has no revision');
  return { revision: streamRevision(Number(stored.toString('latin1', 0, end))), json: stored.subarray(end + 1) };
}
