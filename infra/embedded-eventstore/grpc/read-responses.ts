// Responses of both Read calls as bytes; stored frames are included unchanged.
import type { StoredEvent } from '../log/stored-event.ts';
import { bytesFieldLength, FieldWriter, varintLength } from '../wire/protobuf.ts';
import { bytesOf, positionIn, ReadResp, streamIdentifier, UUID } from './messages.ts';

const RESPONSE = { event: 1 } as const;
const READ_EVENT = { event: 1, link: 2, commitPosition: 3, retryCount: 5 } as const;

/** An event, with the link that it was resolved from; without `event` when the target of the link does not exist. */
export type ResolvedEvent = { event: StoredEvent | undefined; link?: StoredEvent | undefined };

type ResponseOptions = {
  /** Encodes ids as two numbers instead of a string. */
  structuredIds?: boolean;
  /** For persistent subscriptions only. */
  retryCount?: number;
};

/** Bytes of a ReadResp with an event. Both Read calls use the same field numbers. */
export function eventResponse(
  { event, link }: ResolvedEvent,
  { structuredIds = false, retryCount }: ResponseOptions = {},
): Buffer {
  const encode = structuredIds ? withStructuredId : (stored: StoredEvent) => stored.frame;
  const eventFrame = event && encode(event);
  const linkFrame = link && encode(link);
  const position = (link ?? event)?.position ?? 0;
  let size = 1 + varintLength(position);
  if (eventFrame) size += bytesFieldLength(eventFrame.length);
  if (linkFrame) size += bytesFieldLength(linkFrame.length);
  if (retryCount !== undefined) size += 1 + varintLength(retryCount);
  const writer = new FieldWriter(Buffer.allocUnsafe(bytesFieldLength(size)));
  writer.startField(RESPONSE.event, size);
  if (eventFrame) writer.bytesField(READ_EVENT.event, eventFrame);
  if (linkFrame) writer.bytesField(READ_EVENT.link, linkFrame);
  writer.varintField(READ_EVENT.commitPosition, position);
  if (retryCount !== undefined) writer.varintField(READ_EVENT.retryCount, retryCount);
  return writer.buffer;
}

export function confirmationResponse(subscriptionId: string): Buffer {
  const confirmation = new ReadResp.SubscriptionConfirmation().setSubscriptionId(subscriptionId);
  return bytesOf(new ReadResp().setConfirmation(confirmation));
}

export function checkpointResponse(position: number): Buffer {
  return bytesOf(new ReadResp().setCheckpoint(positionIn(new ReadResp.Checkpoint(), position)));
}

export function caughtUpResponse(): Buffer {
  return bytesOf(new ReadResp().setCaughtUp(new ReadResp.CaughtUp()));
}

/** Ends a read of a stream, for clients that know it. */
export function lastStreamPositionResponse(revision: number): Buffer {
  return bytesOf(new ReadResp().setLastStreamPosition(String(revision)));
}

export function streamNotFoundResponse(stream: string): Buffer {
  const notFound = new ReadResp.StreamNotFound().setStreamIdentifier(streamIdentifier(stream));
  return bytesOf(new ReadResp().setStreamNotFound(notFound));
}

/** Replaces the id at the start of the stored frame, a string, by its structured form. */
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
