/** Name and limits of the websocket protocol. */

/** The subprotocol that clients offer and the server answers with. */
export const PROTOCOL = 'parley.v1';
/** A client's second subprotocol is this and its ticket. It is never echoed. */
export const TICKET_PREFIX = 'ticket.';
/** Of a member's token in the place of a ticket. */
export const TOKEN_PREFIX = 'token.';

export const MAX_CLIENT_FRAME_BYTES = 64 * 1024;
export const MAX_CLIENT_FRAMES_PER_MINUTE = 120;
/** Milliseconds in which a client must send its `resume`. */
export const RESUME_WAIT_MS = 10_000;
