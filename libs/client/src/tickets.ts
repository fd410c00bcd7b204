/** Opens one websocket of one channel, once, within a minute. */
export interface Ticket {
  readonly value: string;
}

/**
 * Fetches a ticket. A web page must not hold an API key, so it asks its own backend, which asks Parley. It has 15 seconds;
 * then the signal aborts.
 *
 * An {@link ApiError} that is not `passing` (Parley's own refusal, with a `status` of 4xx except 408, 425 and 429) ends
 * the subscription; after every other error, and a value that is no ticket, the client retries.
 */
export type TicketSource = (channelId: string, signal: AbortSignal) => Promise<Ticket>;

/** Time limit of a request for a ticket. */
const TICKET_WITHIN_MS = 15_000;

/**
 * The value of a ticket.
 *
 * @throws the error of the source, the reason of `signal`, or Error for a source that is late or returns no ticket
 */
export async function ticketOf(source: TicketSource, channelId: string, signal: AbortSignal): Promise<string> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', onAbort);
  const late = new Error(`the ticket source has not answered within ${TICKET_WITHIN_MS / 1_000} s`);
  const timer = setTimeout(() => stop.abort(late), TICKET_WITHIN_MS);
  try {
    const aborted = new Promise<never>((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(stop.signal.reason as Error));
    });
    // The source may ignore its signal.
    const ticket: unknown = await Promise.race([source(channelId, stop.signal), aborted]);
    const value = typeof ticket === 'object' && ticket !== null && 'value' in ticket ? ticket.value : undefined;
    if (typeof value === 'string' && value !== '') return value;
    throw new TypeError(
      `the ticket source returned ${String(JSON.stringify(ticket)).slice(0, 200)}, which is no ticket`,
    );
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
