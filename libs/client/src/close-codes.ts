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

/** Reasons of Parley for closing with {@link CLOSE.ticketRefused}. A proxy that closes with that code gives another one. */
const REFUSALS = new Set(['No valid ticket', 'Pages of this origin may not connect']);

/**
 * What to do after a connection has closed: resume, resume with a new ticket, or give up. Codes that are not Parley's own
 * are treated as failures of the network: proxies close with them, too.
 */
export function meaningOf(code: number, reason: string): 'resume' | 'new ticket' | 'give up' {
  if (code === CLOSE.ticketRefused && REFUSALS.has(reason)) return 'new ticket';
  return code >= 4500 ? 'give up' : 'resume';
}
