/** Close codes of websockets, and of the event `close` of event streams. 4000 to 4499: connect again and resume. From 4500: do not, it would end the same way. */
export const CLOSE = {
  normal: 1000,
  notText: 1003,
  notUtf8: 1007,
  /** The ticket is unknown, used or expired, its key has ended, or the origin is not allowed. Before any frame. */
  refused: 1008,
  /** The frame of a client was too large. */
  tooLarge: 1009,
  fault: 1011,
  /** This node stops; other nodes continue. */
  restart: 1012,
  /** More frames of a client in a minute than it may send. */
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
  /** There will be no more events, at least for now: a channel is archived, the work on an entity has ended. */
  ended: 4504,
  /** The events after the client's position were deleted; the reason names the first one that is left. */
  eventsGone: 4505,
} as const;
export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE];
