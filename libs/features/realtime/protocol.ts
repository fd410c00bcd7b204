/** Name, limits and close codes of the websocket protocol. */

/** The subprotocol that clients offer and the server answers with. */
export const PROTOCOL = 'parley.v1';
/** A client's second subprotocol is this and its ticket. It is never echoed. */
export const TICKET_PREFIX = 'ticket.';
/** Of a member's token in the place of a ticket. */
export const TOKEN_PREFIX = 'token.';

/** Milliseconds between the pings of the server. */
export const HEARTBEAT_MS = 25_000;
/** Milliseconds in which a client must answer a ping. */
export const PONG_WAIT_MS = 10_000;
export const MAX_CLIENT_FRAME_BYTES = 64 * 1024;
export const MAX_CLIENT_FRAMES_PER_MINUTE = 120;
/** Milliseconds in which a client must send its `resume`. */
export const RESUME_WAIT_MS = 10_000;

/** Close codes. 4000 to 4499: connect again and resume. From 4500: do not, it would end the same way. */
export const CLOSE = {
  normal: 1000,
  notText: 1003,
  notUtf8: 1007,
  /** The ticket is unknown, used or expired, its key has ended, or the origin is not allowed. Before any frame. */
  refused: 1008,
  /** The frame was larger than {@link MAX_CLIENT_FRAME_BYTES}. */
  tooLarge: 1009,
  fault: 1011,
  /** This node stops; other nodes continue. */
  restart: 1012,
  /** More frames than {@link MAX_CLIENT_FRAMES_PER_MINUTE}. */
  tooMany: 4008,
  /** The client reads more slowly than its channel produces frames. */
  slow: 4009,
  /** The user was removed from the channel. The key's access is unchanged: a new ticket decides. */
  removed: 4010,
  noPong: 4013,
  /** The log could not be read for 55 seconds, so the key may have been revoked since. */
  unverified: 4014,
  /** The client violated the protocol. */
  protocol: 4500,
  /** The client offered no version that the server supports. */
  version: 4501,
  /** The key was revoked or has expired, or its user was deactivated. */
  accessLost: 4503,
  /** The channel is archived: there will be no more events. */
  channelGone: 4504,
  /** The events after the client's position were deleted; the reason names the first one that is left. */
  eventsGone: 4505,
} as const;
export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE];
