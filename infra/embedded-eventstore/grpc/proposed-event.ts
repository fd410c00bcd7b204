// Parses proposed messages, which Append and BatchAppend share, from their bytes,
// and the options that writes have in common.
import type { StreamIdentifier } from '@eventstore/db-client/generated/shared_pb.js';
import { Fields, mapEntryIn, textIn } from '#libs/platform/protobuf/index.ts';
import { UUID } from './messages.ts';
import {
  MAX_APPEND_BYTES,
  MAX_RECORDS_BYTES,
  invalidArgument,
  maximumAppendSizeExceeded,
  requiredMetadataMissing,
} from './errors.ts';
import type { DeleteRequest, ExpectedRevision } from '../log/event-log.ts';
import type { ProposedEvent } from '../log/stored-event.ts';

const FIELD = { id: 1, map: 2, metadata: 3, data: 4 } as const;
const UUID_STRING = 2;
const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const NO_BYTES = Buffer.alloc(0);

/** Collects the events of one append, up to the limits. */
export class EventCollector {
  readonly events: ProposedEvent[] = [];
  #dataBytes = 0;
  #recordBytes = 0;

  /** Adds the bytes of one ProposedMessage. @throws CallError */
  add(bytes: Buffer): void {
    const event = parseProposedEvent(bytes);
    this.#dataBytes += event.data.length;
    if (this.#dataBytes > MAX_APPEND_BYTES) throw maximumAppendSizeExceeded();
    this.#recordBytes += bytes.length;
    if (this.#recordBytes > MAX_RECORDS_BYTES) {
      throw invalidArgument(`An append must not exceed ${MAX_RECORDS_BYTES} bytes with its metadata.`);
    }
    this.events.push(event);
  }
}

function parseProposedEvent(bytes: Buffer): ProposedEvent {
  const event: ProposedEvent = { id: '', type: '', contentType: '', data: NO_BYTES, metadata: NO_BYTES };
  const fields = new Fields(bytes);
  while (fields.next()) {
    if (fields.field === FIELD.id) event.id = parseUuid(fields.bytes());
    else if (fields.field === FIELD.map) {
      const { key, value } = mapEntryIn(fields.message());
      if (key === 'type') event.type = value;
      else if (key === 'content-type') event.contentType = value;
    } else if (fields.field === FIELD.metadata) event.metadata = fields.bytes();
    else if (fields.field === FIELD.data) event.data = fields.bytes();
    else fields.skip();
  }
  if (event.type === '') throw requiredMetadataMissing('type');
  if (event.contentType === '') throw requiredMetadataMissing('content-type');
  requireUuid(event.id);
  return event;
}

/** @throws CallError for an event id that is not a UUID in lower case */
export function requireUuid(id: string): void {
  if (!UUID_PATTERN.test(id)) throw invalidArgument(`An event id must be a UUID, not '${id}'.`);
}

/** A UUID message as a lower-case string; empty for an empty message. */
export function parseUuid(bytes: Buffer): string {
  const text = textIn(new Fields(bytes), UUID_STRING);
  if (text !== '') return text.toLowerCase();
  const structured = UUID.deserializeBinary(bytes).getStructured();
  if (!structured) return '';
  const high = BigInt.asUintN(64, BigInt(structured.getMostSignificantBits()));
  const low = BigInt.asUintN(64, BigInt(structured.getLeastSignificantBits()));
  const hex = ((high << 64n) | low).toString(16).padStart(32, '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

type ConditionOptions = { hasNoStream(): boolean; hasStreamExists(): boolean };

/** Common to Append, Delete and Tombstone. */
type TargetOptions = ConditionOptions & {
  getStreamIdentifier(): StreamIdentifier | undefined;
  hasRevision(): boolean;
  getRevision(): string;
};

/** @throws CallError for an invalid stream name */
export function parseTarget(options: TargetOptions): DeleteRequest {
  const expected = options.hasRevision() ? Number(options.getRevision()) : parseCondition(options);
  return { stream: parseStreamName(options.getStreamIdentifier()), expected };
}

/** The expected revision of an append or deletion that names no revision. */
export function parseCondition(options: ConditionOptions): ExpectedRevision {
  if (options.hasNoStream()) return 'no_stream';
  return options.hasStreamExists() ? 'stream_exists' : 'any';
}

/** The name in a StreamIdentifier. @throws CallError when it is missing or invalid */
export function parseStreamName(identifier: StreamIdentifier | undefined): string {
  const name = Buffer.from(identifier?.getStreamName_asU8() ?? NO_BYTES).toString('utf8');
  if (name === '' || name === '$$') throw invalidArgument(`'${name}' is not a stream name.`);
  return name;
}
