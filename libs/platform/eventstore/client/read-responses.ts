/*
 * Decodes responses to reads, subscriptions and consumer groups, whose fields have the same numbers. The generated classes
 * would make an object or a string of each field, and read the text of a string character by character. That took a third of
 * the processor time of a read.
 */
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fields, mapEntryIn, textIn, UnexpectedForm } from '#libs/platform/protobuf/index.ts';

/** An event as the server sends it. */
export interface RecordedEvent {
  readonly stream: string;
  /** Not exact for the tombstone of a stream, which is above all others. */
  readonly revision: number;
  readonly position: GlobalPosition;
  readonly id: string;
  readonly type: string;
  /** Bytes, or a text, if it is not JSON. */
  readonly data: unknown;
  /** Undefined if there is none, and bytes if it is not JSON. */
  readonly metadata: unknown;
  readonly createdMs: number;
}

/** Without its event, a link that was to be resolved leads nowhere. */
export interface ResolvedEvent {
  readonly event?: RecordedEvent;
  readonly link?: RecordedEvent;
}

export type ReadItem =
  | ({ readonly kind: 'event' } & ResolvedEvent)
  /** The server has accepted the subscription, or the member of the group. */
  | { readonly kind: 'confirmation' }
  | { readonly kind: 'checkpoint'; readonly position: GlobalPosition }
  /** The last item of a read. */
  | { readonly kind: 'missing-stream' }
  | { readonly kind: 'caught-up' }
  | { readonly kind: 'other' };

/** @throws UnexpectedForm, with which the call fails */
export function decodeResponse(bytes: Buffer): ReadItem {
  const response = new Fields(bytes);
  let item: ReadItem = { kind: 'other' };
  while (response.next()) {
    if (response.field === 1) item = { kind: 'event', ...resolvedEvent(response.message()) };
    else if (response.field === 3) item = { kind: 'checkpoint', position: positionIn(response.message()) };
    else {
      const kind = ({ 2: 'confirmation', 4: 'missing-stream', 8: 'caught-up' } as const)[response.field];
      if (kind !== undefined) item = { kind };
      response.skip();
    }
  }
  return item;
}

function positionIn(fields: Fields): GlobalPosition {
  const position = { commit: 0n, prepare: 0n };
  while (fields.next()) {
    if (fields.field === 1) position.commit = BigInt(fields.varint());
    else if (fields.field === 2) position.prepare = BigInt(fields.varint());
    else fields.skip();
  }
  return position;
}

function resolvedEvent(fields: Fields): ResolvedEvent {
  const resolved: { event?: RecordedEvent; link?: RecordedEvent } = {};
  while (fields.next()) {
    if (fields.field === 1) resolved.event = recordedEvent(fields.message());
    else if (fields.field === 2) resolved.link = recordedEvent(fields.message());
    else fields.skip();
  }
  return resolved;
}

const EMPTY = Buffer.alloc(0);

type Integer = number | bigint;

function recordedEvent(fields: Fields): RecordedEvent {
  let [id, stream, type, contentType, created] = ['', '', '', '', ''];
  let [data, metadata]: [Buffer, Buffer] = [EMPTY, EMPTY];
  let [revision, prepare, commit]: [Integer, Integer, Integer] = [0, 0, 0];
  while (fields.next()) {
    const { field } = fields;
    if (field === 1) id = textIn(fields.message(), 2);
    else if (field === 2) stream = textIn(fields.message(), 3);
    else if (field === 3) revision = fields.varint();
    else if (field === 4) prepare = fields.varint();
    else if (field === 5) commit = fields.varint();
    else if (field === 6) {
      const { key, value } = mapEntryIn(fields.message());
      if (key === 'type') type = value;
      else if (key === 'content-type') contentType = value;
      else if (key === 'created') created = value;
    } else if (field === 7) metadata = fields.bytes();
    else if (field === 8) data = fields.bytes();
    else fields.skip();
  }
  if (id === '' || stream === '') throw new UnexpectedForm('an event has no id, or no stream');
  return {
    stream,
    revision: Number(revision),
    position: { commit: BigInt(commit), prepare: BigInt(prepare) },
    id,
    type,
    data: contentType === 'application/json' ? jsonOr(data, () => data.toString()) : plain(data),
    metadata: metadata.length === 0 ? undefined : jsonOr(metadata, () => plain(metadata)),
    // In units of 100 ns.
    createdMs: Number(created.slice(0, -4)) || 0,
  };
}

function jsonOr(bytes: Buffer, fallback: () => unknown): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return fallback();
  }
}

/** Not a `Buffer`, whose members differ. */
function plain({ buffer, byteOffset, length }: Buffer): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}
