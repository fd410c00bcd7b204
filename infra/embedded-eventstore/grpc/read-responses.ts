// Answers to Streams.Read as bytes. Stored frames go in as they are.
import type { StoredEvent } from '../log/stored-event.ts';
import { bytesFieldLength, FieldWriter, varintLength } from '../wire/protobuf.ts';
import { ReadResp, StreamIdentifier, UUID } from './messages.ts';

const RESPONSE = { event: 1 } as const;
const READ_EVENT = { event: 1, link: 2, commitPosition: 3 } as const;

/** An event as it was read: with `link` when it was reached through one, without `event` when that led nowhere. */
export type ResolvedEvent = { event: StoredEvent | undefined; link?: StoredEvent };

/** Bytes of a ReadResp with an event. `structuredIds`: ids as two numbers instead of a string. */
export function eventResponse({ event, link }: ResolvedEvent, structuredIds = false): Buffer {
  const encode = structuredIds ? withStructuredId : (stored: StoredEvent) => stored.frame;
  const eventFrame = event && encode(event);
  const linkFrame = link && encode(link);
  const position = (link ?? event)?.position ?? 0;
  let size = 1 + varintLength(position);
  if (eventFrame) size += bytesFieldLength(eventFrame.length);
  if (linkFrame) size += bytesFieldLength(linkFrame.length);
  const writer = new FieldWriter(Buffer.allocUnsafe(bytesFieldLength(size)));
  writer.startField(RESPONSE.event, size);
  if (eventFrame) writer.bytesField(READ_EVENT.event, eventFrame);
  if (linkFrame) writer.bytesField(READ_EVENT.link, linkFrame);
  writer.varintField(READ_EVENT.commitPosition, position);
  return writer.buffer;
}

export function confirmationResponse(subscriptionId: string): Buffer {
  const confirmation = new ReadResp.SubscriptionConfirmation().setSubscriptionId(subscriptionId);
  return bytes(new ReadResp().setConfirmation(confirmation));
}

export function checkpointResponse(position: number): Buffer {
  const checkpoint = new ReadResp.Checkpoint();
  checkpoint.setCommitPosition(String(position)).setPreparePosition(String(position));
  return bytes(new ReadResp().setCheckpoint(checkpoint));
}

export function caughtUpResponse(): Buffer {
  return bytes(new ReadResp().setCaughtUp(new ReadResp.CaughtUp()));
}

export function streamNotFoundResponse(stream: string): Buffer {
  const identifier = new StreamIdentifier().setStreamName(Buffer.from(stream));
  return bytes(new ReadResp().setStreamNotFound(new ReadResp.StreamNotFound().setStreamIdentifier(identifier)));
}

function bytes(message: { serializeBinary(): Uint8Array }): Buffer {
  return Buffer.from(message.serializeBinary());
}

/** Stored frames begin with the id as a string; this puts the other form in its place. */
function withStructuredId(stored: StoredEvent): Buffer {
  const hex = BigInt(`0x${stored.id.replaceAll('-', '')}`);
  const structured = new UUID.Structured();
  structured.setMostSignificantBits(String(BigInt.asIntN(64, hex >> 64n)));
  structured.setLeastSignificantBits(String(BigInt.asIntN(64, hex)));
  const uuid = new UUID().setStructured(structured).serializeBinary();
  const stringField = bytesFieldLength(bytesFieldLength(stored.id.length));
  const rest = stored.frame.subarray(stringField);
  const writer = new FieldWriter(Buffer.allocUnsafe(bytesFieldLength(uuid.length) + rest.length));
  writer.bytesField(1, uuid);
  writer.buffer.set(rest, writer.at);
  return writer.buffer;
}
