/** The close codes of `parley.v1` that the client tells apart, and the ones that it sends. */
export const CLOSE = {
  normal: 1000,
  /** The ticket was used or has expired, or the page's origin is not allowed. */
  ticketRefused: 1008,
  /** Sent by us: something is missing, or out of order; we come back. */
  outOfStep: 4000,
  noPong: 4013,
  protocolError: 4500,
  unknownVersion: 4501,
  accessLost: 4503,
  channelGone: 4504,
} as const;

/** What the server says of frames that it cannot take: sending them again would not help. */
const OUR_FAULT = new Set([1002, 1003, 1007, 1009]);

/**
 * What to do after a connection has ended: come back and resume, come back with another ticket, or give up.
 * Whatever is not known is a network's doing, and resumed from.
 */
export function meaningOf(code: number): 'resume' | 'new ticket' | 'give up' {
  if (code === CLOSE.ticketRefused) return 'new ticket';
  return code >= 4500 || OUR_FAULT.has(code) ? 'give up' : 'resume';
}
