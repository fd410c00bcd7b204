/** Key of a ticket. It is not part of the read models: it expires, and cannot be rebuilt. */
export function ticketKey(digest: string): string {
  return `parley:ticket:{${digest}}`;
}
