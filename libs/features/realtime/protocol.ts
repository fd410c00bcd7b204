/** The websocket protocol's name, limits and close codes: what both sides have to know besides the frames. */

/** The subprotocol that a client asks for and the server answers with. */
export const PROTOCOL = 'parley.v1';
/** The second subprotocol of a client is this and its ticket. It is never echoed. */
export const TICKET_PREFIX = 'ticket.';

/** Milliseconds between the pings of a server, and that it waits for the answer. */
export const HEARTBEAT_MS = 25_000;
export const PONG_WAIT_MS = 10_000;
/** Bytes of the largest frame that a client may send. */
export const MAX_CLIENT_FRAME_BYTES = 64 * 1024;
/** Frames that a client may send in any minute. */
export const MAX_CLIENT_FRAMES_PER_MINUTE = 120;
/** Milliseconds that a client has for its `resume`. */
export const RESUME_WAIT_MS = 10_000;

/**
 * Why a socket is closed. 4000 to 4499: connect again and resume. From 4500: do not, it would end the same way.
 */
export const CLOSE = {
  /** The client said goodbye. */
  normal: 1000,
  /** The frame was not text. */
  notText: 1003,
  /** The text was not UTF-8. */
  notUtf8: 1007,
  /** No such ticket (any more), one whose key has ended, or an origin that is not on the list. Before any frame. */
  refused: 1008,
  /** The frame was larger than {@link MAX_CLIENT_FRAME_BYTES}. */
  tooLarge: 1009,
  /** A fault of the server. */
  fault: 1011,
  /** The server stops; others go on. */
  restart: 1012,
  /** More frames than {@link MAX_CLIENT_FRAMES_PER_MINUTE}. */
  tooMany: 4008,
  /** The client does not read as fast as its channel speaks. */
  slow: 4009,
  /** The user was removed from the channel. What the key may read has not changed: a new ticket decides. */
  removed: 4010,
  /** No `pong` came. */
  noPong: 4013,
  /** The log could not be read for 55 seconds, so the key may have been revoked since. */
  unverified: 4014,
  /** The client does not keep to the protocol. */
  protocol: 4500,
  /** The client asked for no version that the server speaks. */
  version: 4501,
  /** The key was revoked or has expired, or its user was deactivated. */
  accessLost: 4503,
  /** The channel is archived: nothing more will happen in it. */
  channelGone: 4504,
} as const;
export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE];
