/**
 * Compares acknowledged requests with the log and with REST, and reports every disagreement. It only looks at records
 * and never queries the system, so tests can pass it doctored records.
 */
import { isDeepStrictEqual } from 'node:util';
import { created, evolve, type ChannelResource } from './channel-fold.ts';
import type { Answer, Attempt, Change, Operation, ReadChannel, Requests } from './history.ts';
import { asRecord, type LogEvent } from './log-reader.ts';

export interface Observation {
  readonly operations: readonly Operation[];
  /** All events of the channels' streams, in the order of the log. */
  readonly log: readonly LogEvent[];
  /** Every channel, read one by one over REST; null where that was not part of the test. */
  readonly reads: ReadonlyMap<string, ReadChannel> | null;
  /** Ids of all channels as the list gives them, newest first; null as above. */
  readonly listed: readonly string[] | null;
}

/** One line per disagreement, each starting with its kind; empty when all is well. */
export function problemsOf(observation: Observation): string[] {
  const sent = sentAttempts(observation.operations);
  const streams = byStream(observation.log);
  return [
    ...unexpectedAnswers(observation.operations),
    ...brokenStreams(streams),
    ...foreignEvents(observation.log, sent),
    ...repeatedEvents(observation.log, sent),
    ...lostOrWrong(observation, streams),
    ...reordered(observation.log, sent),
    ...(observation.reads === null ? [] : wrongReads(observation.reads, streams)),
    ...(observation.listed === null ? [] : wrongList(observation.listed, streams)),
  ];
}

export interface Sent<O extends Requests = Operation> {
  readonly operation: O;
  readonly attempt: Attempt;
}

/** All requests by id. */
export function sentAttempts<O extends Requests>(operations: readonly O[]): Map<string, Sent<O>> {
  const sent = new Map<string, Sent<O>>();
  for (const operation of operations) {
    for (const attempt of operation.attempts) sent.set(attempt.requestId, { operation, attempt });
  }
  return sent;
}

export function byStream(log: readonly LogEvent[]): Map<string, LogEvent[]> {
  const streams = new Map<string, LogEvent[]>();
  for (const event of log) {
    const known = streams.get(event.stream);
    if (known) known.push(event);
    else streams.set(event.stream, [event]);
  }
  return streams;
}

export const requestOf = (event: LogEvent): string => String(event.metadata['$correlationId']);
export const at = (event: LogEvent): string => `${event.type} ${event.stream}@${event.revision}`;
const streamOf = (channelId: string): string => `channel-${channelId}`;

/** Failing stores explain 503 and a missing answer. They never explain 401, 404, 422 or 500. */
function unexpectedAnswers(operations: readonly Operation[]): string[] {
  return operations.flatMap(({ change, attempts }) =>
    attempts
      .filter(({ outcome }) => outcome === 'unexpected')
      .map(({ requestId, detail }) => `unexpected: ${change.kind} ${requestId} was answered ${detail}`),
  );
}

export function brokenStreams(streams: ReadonlyMap<string, readonly LogEvent[]>): string[] {
  return [...streams.values()].flatMap((events) =>
    events
      .filter((event, index) => event.revision !== index || (index === 0) !== (event.type === 'ChannelCreated.v1'))
      .map((event) => `broken: ${at(event)} is not at its revision`),
  );
}

/** Every event must match the request that caused it, and be in the stream that the request named. */
function foreignEvents(log: readonly LogEvent[], sent: ReadonlyMap<string, Sent>): string[] {
  return log.flatMap((event) => {
    const origin = sent.get(requestOf(event));
    if (origin === undefined) return [`foreign: no request wrote ${at(event)}`];
    const { change } = origin.operation;
    return isMadeBy(change, event) ? [] : [`foreign: ${at(event)} differs from the request ${requestOf(event)}`];
  });
}

function isMadeBy(change: Change, event: LogEvent): boolean {
  if (change.kind !== 'create' && event.stream !== streamOf(change.channelId)) return false;
  switch (change.kind) {
    case 'create':
      return event.type === 'ChannelCreated.v1' && event.data['name'] === change.name;
    case 'rename':
      return event.type === 'ChannelRenamed.v1' && event.data['name'] === change.name;
    case 'meta':
      return (
        event.type === 'ChannelMetaDataChanged.v1' &&
        isDeepStrictEqual(event.data['metaData'], { counter: change.counter })
      );
    case 'participant':
      return (
        event.type === 'ParticipantAdded.v1' &&
        isDeepStrictEqual(asRecord(event.data['participant'])['agentMetadata'], { tag: change.tag })
      );
  }
}

/** One event per request; with an idempotency key, one for all requests together; no event id twice. */
export function repeatedEvents(log: readonly LogEvent[], sent: ReadonlyMap<string, Sent<Requests>>): string[] {
  const seen = new Map<string, LogEvent>();
  const problems: string[] = [];
  for (const event of log) {
    const key = sent.get(requestOf(event))?.operation.idempotencyKey;
    const marks = [`event id ${event.id}`, key ? `idempotency key ${key}` : `request ${requestOf(event)}`];
    for (const mark of marks) {
      const former = seen.get(mark);
      if (former) problems.push(`twice: ${at(event)} repeats ${at(former)} (${mark})`);
      else seen.set(mark, event);
    }
  }
  return problems;
}

/**
 * Acknowledged writes are in the log at the revision that the answer names, and the answer equals the fold of the
 * log.
 */
function lostOrWrong({ operations, log }: Observation, streams: ReadonlyMap<string, readonly LogEvent[]>): string[] {
  const byRequest = new Map<string, LogEvent[]>();
  for (const event of log) byRequest.set(requestOf(event), [...(byRequest.get(requestOf(event)) ?? []), event]);
  return operations.flatMap((operation) =>
    operation.attempts.flatMap((attempt) => {
      const own = byRequest.get(attempt.requestId) ?? [];
      if (attempt.outcome === 'not_written') {
        return own.map((event) => `denied: ${at(event)}, though its request was answered ${attempt.detail}`);
      }
      if (attempt.outcome !== 'acknowledged' || attempt.answer === null) return [];
      // A retry may find that an earlier request did the work: its answer may then show that state or a later one.
      const all = operation.attempts.flatMap(({ requestId }) => byRequest.get(requestId) ?? []);
      const done = (own.length > 0 ? own : all).find(
        ({ stream }) => stream === streamOf(attempt.answer?.channelId ?? ''),
      );
      const isOwn = own.length > 0 || operation.attempts.length === 1;
      return wrongAnswer(describe(operation, attempt), attempt.answer, { done, isOwn }, streams);
    }),
  );
}

function wrongAnswer(
  what: string,
  answer: Answer,
  { done, isOwn }: { done: LogEvent | undefined; isOwn: boolean },
  streams: ReadonlyMap<string, readonly LogEvent[]>,
): string[] {
  const { channelId, revision, body } = answer;
  if (done === undefined || done.revision > revision || (isOwn && done.revision !== revision)) {
    return [`lost: ${what} is not at revision ${revision} of ${channelId}`];
  }
  const state = stateAt(streams.get(streamOf(channelId)) ?? [], revision);
  return isDeepStrictEqual(state, body)
    ? []
    : [`wrong answer: ${what} differs from the log in ${difference(state, body)}`];
}

function difference(expected: ChannelResource | undefined, actual: ChannelResource): string {
  const names = Object.keys({ ...expected, ...actual }).filter(
    (name) => !isDeepStrictEqual(expected?.[name], actual[name]),
  );
  return names.join(', ');
}

function describe({ change, idempotencyKey, attempts }: Operation, { requestId }: Attempt): string {
  const sent = `${idempotencyKey === null ? '' : 'with a key, '}${attempts.length} times`;
  return `${change.kind} ${requestId} (sent ${sent})`;
}

/**
 * A request that was sent after another one was answered must follow it in the stream. Walks each stream from its end
 * with the earliest answer seen: an event sent after that answer is out of order.
 */
export function reordered(log: readonly LogEvent[], sent: ReadonlyMap<string, Sent<Requests>>): string[] {
  const problems: string[] = [];
  for (const events of byStream(log).values()) {
    let earliest: { settledAt: number; event: LogEvent } | null = null;
    for (const event of events.toReversed()) {
      const origin = sent.get(requestOf(event));
      if (!origin) continue;
      const sentAt = origin.operation.attempts[0]?.sentAt ?? origin.attempt.sentAt;
      if (earliest !== null && earliest.settledAt < sentAt) {
        problems.push(`reordered: ${at(event)} is before ${at(earliest.event)}, which was answered before it was sent`);
      }
      const { outcome, settledAt } = origin.attempt;
      if (outcome === 'acknowledged' && (earliest === null || settledAt < earliest.settledAt)) {
        earliest = { settledAt, event };
      }
    }
  }
  return problems;
}

/** States at all revisions, folded once per stream, because answers are compared with any of them. */
const statesOf = new WeakMap<readonly LogEvent[], ChannelResource[]>();

function stateAt(events: readonly LogEvent[], revision: number): ChannelResource | undefined {
  let states = statesOf.get(events);
  if (states === undefined) {
    states = [];
    for (const event of events) {
      const before = states.at(-1);
      states.push(before === undefined ? created(event) : evolve(before, event));
    }
    statesOf.set(events, states);
  }
  return states[revision];
}

/** REST shows exactly the fold of each channel's stream. */
function wrongReads(
  reads: ReadonlyMap<string, ReadChannel>,
  streams: ReadonlyMap<string, readonly LogEvent[]>,
): string[] {
  const problems: string[] = [];
  for (const [stream, events] of streams) {
    const read = reads.get(stream.slice(streamOf('').length));
    const last = events.length - 1;
    if (read === undefined) problems.push(`not shown: ${stream} cannot be read`);
    else if (read.revision !== last) problems.push(`stale: ${stream} is shown at ${read.revision}, it is at ${last}`);
    else if (!isDeepStrictEqual(read.body, stateAt(events, last))) {
      problems.push(`wrong read: ${stream} differs from its log in ${difference(stateAt(events, last), read.body)}`);
    }
  }
  for (const id of reads.keys()) if (!streams.has(streamOf(id))) problems.push(`made up: ${id} is not in the log`);
  return problems;
}

function wrongList(listed: readonly string[], streams: ReadonlyMap<string, readonly LogEvent[]>): string[] {
  const inLog = [...streams.keys()].map((stream) => stream.slice(streamOf('').length));
  const expected = inLog.map((id) => [createdAt(streams.get(streamOf(id))), id] as const);
  const newestFirst = expected.sort(([a, x], [b, y]) => (a === b ? (x < y ? 1 : -1) : a < b ? 1 : -1));
  if (
    isDeepStrictEqual(
      listed,
      newestFirst.map(([, id]) => id),
    )
  )
    return [];
  const missing = inLog.filter((id) => !listed.includes(id));
  const extra = listed.filter((id) => !inLog.includes(id));
  return [`wrong list: ${missing.length} missing, ${extra.length} too many, of ${inLog.length}, or out of order`];
}

function createdAt(events: readonly LogEvent[] | undefined): string {
  return String(events?.[0]?.metadata['at']);
}
