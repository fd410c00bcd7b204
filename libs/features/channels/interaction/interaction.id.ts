import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

/** The channel of an interaction, and its sequence there. */
export interface InteractionRef {
  readonly channelId: EntityId;
  readonly sequence: ChannelSequence;
}

const UUID_BYTES = 16;
const SEQUENCE_BYTES = 6;
/** The last character encodes two bits of the sequence and four zero bits, so each interaction has exactly one id. */
const ID = /^[A-Za-z0-9_-]{29}[AQgw]$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * The id of an interaction encodes its channel and sequence, so that a read finds it in one round trip: the 16 bytes of
 * the channel's UUID and 6 bytes of the sequence, in base64url (30 characters).
 */
export function interactionId({ channelId, sequence }: InteractionRef): EntityId {
  if (!UUID.test(channelId)) throw new TypeError(`not the id of a channel: ${channelId}`);
  const bytes = Buffer.alloc(UUID_BYTES + SEQUENCE_BYTES);
  bytes.write(channelId.replaceAll('-', ''), 'hex');
  bytes.writeUIntBE(sequence, UUID_BYTES, SEQUENCE_BYTES);
  return bytes.toString('base64url');
}

/** Decodes an id; null if it is not valid. */
export function parseInteractionId(id: EntityId): InteractionRef | null {
  if (!ID.test(id)) return null;
  const bytes = Buffer.from(id, 'base64url');
  const sequence = bytes.readUIntBE(UUID_BYTES, SEQUENCE_BYTES) as ChannelSequence;
  if (sequence === 0) return null;
  const hex = bytes.toString('hex', 0, UUID_BYTES);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return { channelId: parts.join('-'), sequence };
}
