/**
 * Compares the writes of a load with the log: it holds every acknowledged write once and in order, and nothing else.
 * It never queries the system, so tests can pass it doctored records.
 */
import {
  at,
  brokenStreams,
  byStream,
  reordered,
  repeatedEvents,
  requestOf,
  type Sent,
  sentAttempts,
} from './history-checker.ts';
import type { WriteRecord } from './interaction-load.ts';
import type { LogEvent } from './log-reader.ts';

/**
 * One line per disagreement, each starting with its kind; empty when all is well.
 * @param log of the channels of the load, from their beginnings
 * @param others requests besides the load: those that created the channels
 */
export function writeProblems(
  records: readonly WriteRecord[],
  log: readonly LogEvent[],
  others: ReadonlySet<string> = new Set(),
): string[] {
  const sent = sentAttempts(records);
  const own = log.filter((event) => !others.has(requestOf(event)));
  return [
    ...unexpectedAnswers(records),
    ...brokenStreams(byStream(log)),
    ...foreignEvents(own, sent),
    ...repeatedEvents(own, sent),
    ...lost(records, own),
    ...reordered(own, sent),
  ];
}

function unexpectedAnswers(records: readonly WriteRecord[]): string[] {
  return records.flatMap(({ write, attempts }) =>
    attempts
      .filter(({ outcome }) => outcome === 'unexpected')
      .map(({ requestId, detail }) => `unexpected: ${write.kind} ${requestId} was answered ${detail}`),
  );
}

function foreignEvents(log: readonly LogEvent[], sent: ReadonlyMap<string, Sent<WriteRecord>>): string[] {
  return log.flatMap((event) => {
    const origin = sent.get(requestOf(event));
    if (origin === undefined) return [`foreign: no request wrote ${at(event)}`];
    const { channelId, eventType, mark } = origin.operation.write;
    const isAsked =
      event.stream === `channel-${channelId}` && event.type === eventType && JSON.stringify(event.data).includes(mark);
    return isAsked ? [] : [`foreign: ${at(event)} differs from the request ${requestOf(event)}`];
  });
}

function lost(records: readonly WriteRecord[], log: readonly LogEvent[]): string[] {
  const events = new Map(log.map((event) => [requestOf(event), event]));
  return records.flatMap(({ write, attempts }) => {
    const done = attempts.find(({ requestId }) => events.has(requestId));
    return attempts.flatMap(({ requestId, outcome, detail }) => {
      if (outcome === 'acknowledged' && done === undefined) return [`lost: ${write.kind} ${requestId}`];
      if (outcome !== 'not_written') return [];
      const event = events.get(requestId);
      return event === undefined ? [] : [`denied: ${at(event)}, though its request was answered ${detail}`];
    });
  });
}
