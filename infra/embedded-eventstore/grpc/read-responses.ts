// Responses of both Read calls as bytes; stored frames are included unchanged.
import { bytes, encode, message, number, text, type Field } from '#libs/platform/protobuf/index.ts';
import type { StoredEvent } from '../log/stored-event.ts';
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
  const frameOf = structuredIds ? withStructuredId : (stored: StoredEvent) => stored.frame;
  const fields: Field[] = [];
  if (event) fields.push(bytes(READ_EVENT.event, frameOf(event)));
  if (link) fields.push(bytes(READ_EVENT.link, frameOf(link)));
  fields.push(number(READ_EVENT.commitPosition, (link ?? event)?.position ?? 0));
  if (retryCount !== undefined) fields.push(number(READ_EVENT.retryCount, retryCount));
  return encode([message(RESPONSE.event, fields)]);
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
  const stringId = encode([message(1, [text(2, stored.id)])]);
  return Buffer.concat([encode([bytes(1, uuid)]), stored.frame.subarray(stringId.length)]);
}
