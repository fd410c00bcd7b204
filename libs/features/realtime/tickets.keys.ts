/** Key of one ticket. No part of the read models: it expires, and cannot be built again. */
export function ticketKey(digest: string): string {
  return `parley:ticket:{${digest}}`;
}
