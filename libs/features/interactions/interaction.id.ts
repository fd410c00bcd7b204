import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

/** Where an interaction stands: its channel, and its sequence in it. */
export interface InteractionPlace {
  readonly channelId: EntityId;
  readonly sequence: ChannelSequence;
}

const UUID_BYTES = 16;
const SEQUENCE_BYTES = 6;
const ID = /^[A-Za-z0-9_-]{30}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * The id of an interaction says where it stands, so that finding one takes a single look: 16 bytes of the
 * channel's UUID and 6 of its sequence, in base64url (30 characters).
 */
export function interactionId({ channelId, sequence }: InteractionPlace): EntityId {
  if (!UUID.test(channelId)) throw new TypeError(`not the id of a channel: ${channelId}`);
  const bytes = Buffer.alloc(UUID_BYTES + SEQUENCE_BYTES);
  bytes.write(channelId.replaceAll('-', ''), 'hex');
  bytes.writeUIntBE(sequence, UUID_BYTES, SEQUENCE_BYTES);
  return bytes.toString('base64url');
}

/** The place that an id names, or null for what cannot be an id. */
export function placeOfInteraction(id: EntityId): InteractionPlace | null {
  if (!ID.test(id)) return null;
  const bytes = Buffer.from(id, 'base64url');
  const hex = bytes.toString('hex', 0, UUID_BYTES);
  const channelId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const sequence = bytes.readUIntBE(UUID_BYTES, SEQUENCE_BYTES) as ChannelSequence;
  // Two texts must not name one thing: the last character carries bits that say nothing.
  return bytes.toString('base64url') === id && sequence > 0 ? { channelId, sequence } : null;
}
