/** What opens one websocket of one channel, once, within a minute. */
export interface Ticket {
  readonly value: string;
}

/**
 * Fetches a ticket. A page that must not hold an API key asks its own backend, which asks Parley.
 *
 * An {@link ApiError} that is not passing (its `status` is 4xx, save 408, 425 and 429) ends the subscription;
 * after every other error it is asked again, later.
 */
export type TicketSource = (channelId: string, signal: AbortSignal) => Promise<Ticket>;
