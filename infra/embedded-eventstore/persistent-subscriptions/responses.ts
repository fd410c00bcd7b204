// Answers to PersistentSubscriptions.Read as bytes. Stored frames go in as they
// are: both services have the same `RecordedEvent`.
import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import { bytesFieldLength, FieldWriter, varintLength } from '../wire/protobuf.ts';
import type { Message } from './message.ts';

const RESPONSE = { event: 1 } as const;
const READ_EVENT = { event: 1, link: 2, commitPosition: 3, retryCount: 5 } as const;

export function deliveryResponse({ event, link, retryCount }: Message): Buffer {
  const position = (link ?? event)?.position ?? 0;
  let size = 1 + varintLength(position) + 1 + varintLength(retryCount);
  if (event) size += bytesFieldLength(event.frame.length);
  if (link) size += bytesFieldLength(link.frame.length);
  const writer = new FieldWriter(Buffer.allocUnsafe(bytesFieldLength(size)));
  writer.startField(RESPONSE.event, size);
  if (event) writer.bytesField(READ_EVENT.event, event.frame);
  if (link) writer.bytesField(READ_EVENT.link, link.frame);
  writer.varintField(READ_EVENT.commitPosition, position);
  writer.varintField(READ_EVENT.retryCount, retryCount);
  return writer.buffer;
}

export function confirmationResponse(subscriptionId: string): Buffer {
  const confirmation = new persistent.ReadResp.SubscriptionConfirmation().setSubscriptionId(subscriptionId);
  return Buffer.from(new persistent.ReadResp().setSubscriptionConfirmation(confirmation).serializeBinary());
}
