/** Opens one websocket of one channel, once, within a minute. */
export interface Ticket {
  readonly value: string;
}

/**
 * Fetches a ticket. A web page must not hold an API key, so it asks its own backend, which asks Parley.
 *
 * An {@link ApiError} that is not `passing` (its `status` is 4xx, except 408, 425 and 429) ends the subscription; after
 * every other error the client retries.
 */
export type TicketSource = (channelId: string, signal: AbortSignal) => Promise<Ticket>;
