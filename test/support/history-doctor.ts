/** Plants faults in a log that a checker must find. Renumbers revisions contiguously, as a store would. */
import type { LogEvent } from './log-reader.ts';

export function withoutEvent(log: readonly LogEvent[], index: number): LogEvent[] {
  return renumbered(log.filter((_, at) => at !== index));
}

/** @param id of the copy; by default the id of the event */
export function withEventTwice(log: readonly LogEvent[], index: number, id?: string): LogEvent[] {
  return renumbered(log.flatMap((event, at) => (at === index ? [event, { ...event, id: id ?? event.id }] : [event])));
}

/** Swaps two entries of the log. */
export function withSwapped(log: readonly LogEvent[], one: number, other: number): LogEvent[] {
  const [a, b] = [log[one], log[other]];
  if (!a || !b || a.stream !== b.stream) throw new TypeError('two events of one stream are needed');
  return renumbered(log.map((event, at) => (at === one ? b : at === other ? a : event)));
}

function renumbered(log: readonly LogEvent[]): LogEvent[] {
  const next = new Map<string, number>();
  return log.map((event) => {
    const revision = next.get(event.stream) ?? 0;
    next.set(event.stream, revision + 1);
    return { ...event, revision };
  });
}
