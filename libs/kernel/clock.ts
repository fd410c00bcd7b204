/** RFC 3339 in UTC with milliseconds: `2026-01-31T12:00:00.000Z`. */
export type Timestamp = string;

/** Where time comes from. Deciders never ask it: a command brings its time along. */
export interface Clock {
  now(): Timestamp;
}

export const systemClock: Clock = { now: () => new Date().toISOString() };
