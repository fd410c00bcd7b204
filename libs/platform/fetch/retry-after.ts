const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * The wait that a response asks for, in milliseconds: `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or
 * `retry-after-ms`, which some servers add. Null for none, and for one that cannot be read: callers then use their own
 * backoff, and in both cases bound the wait.
 */
export function retryAfterMs(headers: ReadonlyMap<string, string>): number | null {
  const ms = headers.get('retry-after-ms')?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(ms)) return Number(ms);
  const given = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(given)) return Number(given) * 1_000;
  return HTTP_DATE.test(given) ? Math.max(0, Date.parse(given) - Date.now()) : null;
}
