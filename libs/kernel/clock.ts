/** RFC 3339 in UTC with milliseconds: `2026-01-31T12:00:00.000Z`. */
export type Timestamp = string;

/** Source of time. Deciders do not use it: a command contains its time. */
export const systemClock = { now: (): Timestamp => new Date().toISOString() };
