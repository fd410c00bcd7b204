// The storage format of one event: the protobuf bytes of the protocol's
// `RecordedEvent`, encoded once and sent to readers unchanged.
//
// WARNING: these bytes are on disk. Field numbers are the protocol's and fixed.
import {
  bytes,
  encode,
  Fields,
  mapEntry,
  mapEntryIn,
  maxInt64,
  message,
  number,
  text,
  textIn,
} from '#libs/platform/protobuf/index.ts';

/** The protocol's revision of a tombstone (2^63 - 1); rounded as a number, exact on the wire. */
export const TOMBSTONE_REVISION = 2 ** 63;

/** Event type of a link; its data is `revision@stream`. */
export const LINK_TYPE = '$>';

export type ProposedEvent = {
  /** UUID, lower case. */
  id: string;
  type: string;
  /** `application/json` or `application/octet-stream`. */
  contentType: string;
  data: Uint8Array;
  /** Custom metadata as the client sent it; may be empty. */
  metadata: Uint8Array;
};

const FIELD = { id: 1, stream: 2, revision: 3, prepare: 4, commit: 5, map: 6, metadata: 7, data: 8 } as const;
const UUID_STRING = 2;
const STREAM_NAME = 3;

/** The protocol counts `created` in ticks of 100 ns since the Unix epoch. */
const TICKS_PER_MS = '0000';

export type Recorded = { stream: string; revision: number; position: number; createdMs: number };

/** Encodes `event` for storage and readers. */
export function encodeStoredEvent(event: ProposedEvent, { stream, revision, position, createdMs }: Recorded): Buffer {
  const fields = [
    message(FIELD.id, [text(UUID_STRING, event.id)]),
    message(FIELD.stream, [text(STREAM_NAME, stream)]),
    revision === TOMBSTONE_REVISION ? maxInt64(FIELD.revision) : number(FIELD.revision, revision),
    number(FIELD.prepare, position),
    number(FIELD.commit, position),
    mapEntry(FIELD.map, 'type', event.type),
    mapEntry(FIELD.map, 'content-type', event.contentType),
    mapEntry(FIELD.map, 'created', `${createdMs}${TICKS_PER_MS}`),
  ];
  if (event.metadata.length > 0) fields.push(bytes(FIELD.metadata, event.metadata));
  if (event.data.length > 0) fields.push(bytes(FIELD.data, event.data));
  return encode(fields);
}

const NO_BYTES = Buffer.alloc(0);

/** A stored event: `frame` for readers; the other fields are views and small strings. */
export class StoredEvent {
  /** The bytes of the protocol's `RecordedEvent`. */
  readonly frame: Buffer;
  id = '';
  stream = '';
  revision = 0;
  /** Commit and prepare position are the same. */
  position = 0;
  type = '';
  contentType = '';
  createdMs = 0;
  metadata: Buffer = NO_BYTES;
  data: Buffer = NO_BYTES;

  constructor(frame: Buffer) {
    this.frame = frame;
    const fields = new Fields(frame);
    while (fields.next()) {
      if (fields.field === FIELD.id) this.id = textIn(fields.message(), UUID_STRING);
      else if (fields.field === FIELD.stream) this.stream = textIn(fields.message(), STREAM_NAME);
      else if (fields.field === FIELD.revision) this.revision = Number(fields.varint());
      else if (fields.field === FIELD.commit) this.position = Number(fields.varint());
      else if (fields.field === FIELD.map) this.#readMapEntry(fields.message());
      else if (fields.field === FIELD.metadata) this.metadata = fields.bytes();
      else if (fields.field === FIELD.data) this.data = fields.bytes();
      else fields.skip();
    }
  }

  get isLink(): boolean {
    return this.type === LINK_TYPE;
  }

  #readMapEntry(fields: Fields): void {
    const { key, value } = mapEntryIn(fields);
    if (key === 'type') this.type = value;
    else if (key === 'content-type') this.contentType = value;
    else if (key === 'created') this.createdMs = Number(value.slice(0, -TICKS_PER_MS.length));
  }
}

/** The target of a link; undefined when its data is not `revision@stream`. */
export function parseLink(data: Buffer): { stream: string; revision: number } | undefined {
  const match = /^(\d{1,16})@(.+)$/s.exec(data.toString('utf8'));
  const [, revision, stream] = match ?? [];
  return revision === undefined || stream === undefined ? undefined : { stream, revision: Number(revision) };
}
