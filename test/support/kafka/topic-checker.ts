/**
 * Checks that a topic holds exactly the log, and that the first copy of each event comes in the order of its stream.
 */
import { isDeepStrictEqual } from 'node:util';
import { at } from '../history-checker.ts';
import type { LogEvent } from '../log-reader.ts';

/**
 * One line per problem, each starting with its kind; empty when all is well.
 * @param messages relayed messages, in the order of each partition; duplicates are allowed
 */
export function topicProblems(messages: readonly LogEvent[], log: readonly LogEvent[]): string[] {
  const events = new Map(log.map((event) => [event.id, event]));
  const next = new Map<string, number>();
  const problems: string[] = [];
  for (const message of messages) {
    const event = events.get(message.id);
    const due = next.get(message.stream) ?? 0;
    if (event === undefined) problems.push(`foreign: ${at(message)} is not in the log`);
    else if (!isDeepStrictEqual(event, message)) problems.push(`altered: ${at(message)} differs from the log`);
    else if (message.revision > due) problems.push(`reordered: ${at(message)} came where ${due} was expected`);
    else if (message.revision === due) next.set(message.stream, due + 1);
  }
  const relayed = new Set(messages.map(({ id }) => id));
  for (const event of log) if (!relayed.has(event.id)) problems.push(`missing: ${at(event)} was never relayed`);
  return problems;
}
