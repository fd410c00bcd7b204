// The storage format of one event: the protobuf bytes of the protocol's
// `RecordedEvent`, encoded once and sent to readers unchanged.
//
// WARNING: these bytes are on disk. Field numbers are the protocol's and fixed.
import {
  bytesFieldLength,
  FieldReader,
  FieldWriter,
  mapEntryOf,
  nestedString,
  varintLength,
} from '../wire/protobuf.ts';

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
const MAP_KEY = 1;
const MAP_VALUE = 2;

/** The protocol counts `created` in ticks of 100 ns since the Unix epoch. */
const TICKS_PER_MS = '0000';

export type Recorded = { stream: string; revision: number; position: number; createdMs: number };

/** An entry of the protocol's system metadata. */
type MapEntry = { key: string; value: string; valueBytes: number; length: number };

function mapEntry(key: string, value: string): MapEntry {
  const valueBytes = Buffer.byteLength(value);
  return { key, value, valueBytes, length: bytesFieldLength(key.length) + bytesFieldLength(valueBytes) };
}

const revisionLength = (revision: number): number => (revision === TOMBSTONE_REVISION ? 9 : varintLength(revision));

/** Encodes `event` for storage and readers. */
export function encodeStoredEvent(event: ProposedEvent, recorded: Recorded): Buffer {
  const streamBytes = Buffer.byteLength(recorded.stream);
  const entries = [
    mapEntry('type', event.type),
    mapEntry('content-type', event.contentType),
    mapEntry('created', `${recorded.createdMs}${TICKS_PER_MS}`),
  ];
  const idLength = bytesFieldLength(event.id.length);
  const streamLength = bytesFieldLength(streamBytes);
  const positionLength = 1 + varintLength(recorded.position);
  let size = 1 + revisionLength(recorded.revision) + 2 * positionLength;
  size += bytesFieldLength(idLength) + bytesFieldLength(streamLength);
  for (const entry of entries) size += bytesFieldLength(entry.length);
  if (event.metadata.length > 0) size += bytesFieldLength(event.metadata.length);
  if (event.data.length > 0) size += bytesFieldLength(event.data.length);

  const writer = new FieldWriter(Buffer.allocUnsafe(size));
  writer.startField(FIELD.id, idLength);
  writer.stringField(UUID_STRING, event.id, event.id.length);
  writer.startField(FIELD.stream, streamLength);
  writer.stringField(STREAM_NAME, recorded.stream, streamBytes);
  if (recorded.revision === TOMBSTONE_REVISION) writer.maxInt64Field(FIELD.revision);
  else writer.varintField(FIELD.revision, recorded.revision);
  writer.varintField(FIELD.prepare, recorded.position);
  writer.varintField(FIELD.commit, recorded.position);
  for (const entry of entries) {
    writer.startField(FIELD.map, entry.length);
    writer.stringField(MAP_KEY, entry.key, entry.key.length);
    writer.stringField(MAP_VALUE, entry.value, entry.valueBytes);
  }
  if (event.metadata.length > 0) writer.bytesField(FIELD.metadata, event.metadata);
  if (event.data.length > 0) writer.bytesField(FIELD.data, event.data);
  return writer.buffer;
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
    const reader = new FieldReader(frame);
    while (reader.next()) {
      if (reader.field === FIELD.id) this.id = nestedString(reader.bytes(), UUID_STRING);
      else if (reader.field === FIELD.stream) this.stream = nestedString(reader.bytes(), STREAM_NAME);
      else if (reader.field === FIELD.revision) this.revision = reader.varint();
      else if (reader.field === FIELD.commit) this.position = reader.varint();
      else if (reader.field === FIELD.map) this.#readMapEntry(reader.bytes());
      else if (reader.field === FIELD.metadata) this.metadata = reader.bytes();
      else if (reader.field === FIELD.data) this.data = reader.bytes();
      else reader.skip();
    }
  }

  get isLink(): boolean {
    return this.type === LINK_TYPE;
  }

  #readMapEntry(bytes: Buffer): void {
    const { key, value } = mapEntryOf(bytes);
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
