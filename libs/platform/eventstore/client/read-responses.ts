/*
 * The client decodes each event that it reads with the generated classes of protobuf: an object or a string for each field,
 * and the text of a string character by character. That took a third of the processor time of a read. This module decodes
 * responses with an event to what the client reads of them. The generated classes decode all other responses, and events
 * in an unusual form.
 */
import { StreamsClient, StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { CallOptions, Client, Metadata } from '@grpc/grpc-js';
import { Fields, mapEntryIn, UnexpectedForm } from '#libs/platform/protobuf/index.ts';

/** Field 1, of a length that follows. */
const TAG_OF_EVENT = 0x0a;

/** The members of the generated classes that the client calls, see `convertGrpcEvent` and `parseUUID`. */
class EventResponse {
  readonly #event: ReadEvent;

  constructor(event: ReadEvent) {
    this.#event = event;
  }

  hasEvent(): boolean {
    return true;
  }

  getEvent(): ReadEvent {
    return this.#event;
  }
}

class ReadEvent {
  event: RecordedEvent | undefined;
  link: RecordedEvent | undefined;
  commitPosition: number | bigint | undefined;

  hasEvent(): boolean {
    return this.event !== undefined;
  }

  getEvent(): RecordedEvent | undefined {
    return this.event;
  }

  hasLink(): boolean {
    return this.link !== undefined;
  }

  getLink(): RecordedEvent | undefined {
    return this.link;
  }

  hasCommitPosition(): boolean {
    return this.commitPosition !== undefined;
  }

  /** The client passes numbers to `BigInt`. */
  getCommitPosition(): number | bigint | undefined {
    return this.commitPosition;
  }
}

const NOTHING = Buffer.alloc(0);

/** Also serves as the messages of its id and of its stream's name: one object in place of three. */
class RecordedEvent {
  id = '';
  stream: Buffer = NOTHING;
  revision: number | bigint = 0;
  preparePosition: number | bigint = 0;
  commitPosition: number | bigint = 0;
  readonly metadata = new Map<string, string>();
  customMetadata: Buffer = NOTHING;
  data: Buffer = NOTHING;

  hasId(): boolean {
    return true;
  }

  getId(): this {
    return this;
  }

  /** Member of the id: it is not two numbers. */
  hasStructured(): boolean {
    return false;
  }

  /** Member of the id. */
  getString(): string {
    return this.id;
  }

  hasStreamIdentifier(): boolean {
    return true;
  }

  getStreamIdentifier(): this {
    return this;
  }

  getStreamName(): Buffer {
    return this.stream;
  }

  getStreamRevision(): number | bigint {
    return this.revision;
  }

  getPreparePosition(): number | bigint {
    return this.preparePosition;
  }

  getCommitPosition(): number | bigint {
    return this.commitPosition;
  }

  getMetadataMap(): ReadonlyMap<string, string> {
    return this.metadata;
  }

  getCustomMetadata_asU8(): Uint8Array {
    return plain(this.customMetadata);
  }

  getData(): Uint8Array {
    return this.data;
  }

  getData_asU8(): Uint8Array {
    return plain(this.data);
  }
}

/** Callers of the client get an array where the content of an event is not JSON. */
function plain({ buffer, byteOffset, length }: Buffer): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}

function eventResponse(bytes: Buffer): EventResponse {
  const response = new Fields(bytes);
  if (!response.next() || response.field !== 1) throw new UnexpectedForm();
  const event = readEvent(response.message());
  // Further fields would replace it, or the client would read them.
  if (response.next()) throw new UnexpectedForm();
  return new EventResponse(event);
}

function readEvent(fields: Fields): ReadEvent {
  const event = new ReadEvent();
  while (fields.next()) {
    if (fields.field === 1) event.event = recordedEvent(fields.message());
    else if (fields.field === 2) event.link = recordedEvent(fields.message());
    else if (fields.field === 3) event.commitPosition = fields.varint();
    else fields.skip();
  }
  return event;
}

function recordedEvent(fields: Fields): RecordedEvent {
  const event = new RecordedEvent();
  let id: string | undefined;
  let stream: Buffer | undefined;
  while (fields.next()) {
    switch (fields.field) {
      case 1:
        // As a string, which the client asks for, and not as two numbers.
        id = onlyField(fields.message(), 2).toString();
        break;
      case 2:
        stream = onlyField(fields.message(), 3);
        break;
      case 3:
        event.revision = fields.varint();
        break;
      case 4:
        event.preparePosition = fields.varint();
        break;
      case 5:
        event.commitPosition = fields.varint();
        break;
      case 6: {
        const { key, value } = mapEntryIn(fields.message());
        event.metadata.set(key, value);
        break;
      }
      case 7:
        event.customMetadata = fields.bytes();
        break;
      case 8:
        event.data = fields.bytes();
        break;
      default:
        fields.skip();
    }
  }
  if (id === undefined || stream === undefined) throw new UnexpectedForm();
  event.id = id;
  event.stream = stream;
  return event;
}

/** The content of a message with one field. */
function onlyField(fields: Fields, field: number): Buffer {
  if (!fields.next() || fields.field !== field) throw new UnexpectedForm();
  const content = fields.bytes();
  if (fields.next()) throw new UnexpectedForm();
  return content;
}

const { path, requestSerialize, responseDeserialize: generated } = StreamsService.read;

/** A response to a read or a subscription. */
export function decodeResponse(bytes: Buffer): ReadResp {
  if (bytes[0] !== TAG_OF_EVENT) return generated(bytes);
  try {
    // The client calls no other members of it.
    return eventResponse(bytes) as unknown as ReadResp;
  } catch (error) {
    if (error instanceof UnexpectedForm) return generated(bytes);
    throw error;
  }
}

type Rest = [metadata: Metadata, options?: Partial<CallOptions>];

// As gRPC defines it, except for the function that decodes responses. That one also gets the received bytes, not a copy.
Object.assign(StreamsClient.prototype, {
  read(this: Client, request: ReadReq, ...rest: Rest) {
    return this.makeServerStreamRequest(path, requestSerialize, decodeResponse, request, ...rest);
  },
});
