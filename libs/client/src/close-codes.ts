/** Close codes of `parley.v1` that the client distinguishes or sends. */
export const CLOSE = {
  normal: 1000,
  /** The ticket was used or has expired, or the page's origin is not allowed. */
  ticketRefused: 1008,
  /** Sent by the client: events are missing or out of order. It reconnects. */
  outOfStep: 4000,
  noPong: 4013,
  protocolError: 4500,
  unknownVersion: 4501,
  accessLost: 4503,
  channelGone: 4504,
  /** The events after the client's position were deleted in the event store. */
  eventsGone: 4505,
} as const;

/** The server refuses a frame: sending it again would not help. */
const INVALID_FRAME = new Set([1002, 1003, 1007, 1009]);

/**
 * What to do after a connection has closed: resume, resume with a new ticket, or give up. Unknown codes are treated as
 * network failures: the client resumes.
 */
export function meaningOf(code: number): 'resume' | 'new ticket' | 'give up' {
  if (code === CLOSE.ticketRefused) return 'new ticket';
  return code >= 4500 || INVALID_FRAME.has(code) ? 'give up' : 'resume';
}
