/**
 * Uses of API keys around their end, and the rule for when a use may still be accepted. Times are of
 * `performance.now()`.
 */
export interface EndedKey {
  readonly name: string;
  /** When the end was acknowledged, or the expiry passed. */
  readonly endedAtMs: number;
  /** Whether the process that ended it could announce that to the others over Redis. */
  readonly announced: boolean;
}

export interface KeyUse {
  readonly key: EndedKey;
  /** Such as `GET at gateway 0`. */
  readonly what: string;
  readonly sentAtMs: number;
  /** When the process that received it was started. */
  readonly startedAtMs: number;
  readonly accepted: boolean;
  /**
   * An event that was posted at that time and arrived over a socket of the key. Expiries close sockets to the second.
   */
  readonly isDelivery?: boolean;
}

const ANNOUNCED_MS = 1_000;
const UNANNOUNCED_MS = 60_000;
const DELIVERY_MS = 2_000;

/** Longest time after the end of a key during which a process may accept it. */
export function graceOf({ announced, endedAtMs }: EndedKey, startedAtMs: number): number {
  if (startedAtMs > endedAtMs) return 0;
  return announced ? ANNOUNCED_MS : UNANNOUNCED_MS;
}

/** Describes the uses that were accepted too late. The time of sending counts, so a slow machine breaks no rule. */
export function acceptedTooLate(uses: readonly KeyUse[]): string[] {
  return uses
    .filter(({ key, accepted, sentAtMs, startedAtMs, isDelivery = false }) => {
      const grace = graceOf(key, startedAtMs) + (isDelivery ? DELIVERY_MS : 0);
      return accepted && sentAtMs > key.endedAtMs + grace;
    })
    .map(({ key, what, sentAtMs, startedAtMs }) => {
      const since = Math.round(sentAtMs - key.endedAtMs);
      const by = startedAtMs > key.endedAtMs ? ', by a process started after it' : '';
      return `${key.name}: ${what} was accepted ${since} ms after the end${by}`;
    });
}
