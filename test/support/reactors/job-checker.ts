/**
 * Checks the log of jobs: each has ended once with the right event, and each event has led to one outcome. It never
 * queries the system, so tests can pass it doctored logs.
 */
import type { LogEvent } from '../log-reader.ts';
import { HOPELESS } from './jobs.ts';

/** One line per disagreement; empty when all is well. */
export function jobProblems(log: readonly LogEvent[]): string[] {
  const steps = log.filter(({ type }) => type === 'JobStepped.v1');
  return [
    ...[...Map.groupBy(log, ({ stream }) => stream)].flatMap(([stream, events]) => problemsOf(stream, events)),
    ...repeated(log, ({ id }) => id).map((id) => `repeated: the event ${id}`),
    ...repeated(steps, ({ data }) => String(data['effect'])).map((effect) => `repeated: the effect ${effect}`),
  ];
}

/** Whether every job has an end. */
export function allEnded(log: readonly LogEvent[]): boolean {
  const ended = new Set(log.filter(isEnd).map(({ stream }) => stream));
  return log.every(({ stream }) => ended.has(stream));
}

function problemsOf(stream: string, events: readonly LogEvent[]): string[] {
  const problems: string[] = [];
  const types = events.map(({ type }) => type.replaceAll(/^Job|\.v1$/g, ''));
  const requested = Number(events[0]?.data['steps']);
  const steps = Array.from({ length: requested === HOPELESS ? 0 : requested }, () => 'Stepped');
  const expected = ['Requested', ...steps, requested === HOPELESS ? 'Failed' : 'Done'];
  const ends = events.filter(isEnd).length;
  if (ends === 0) problems.push(`open: ${stream} has not ended: ${types.join(' ')}`);
  else if (ends > 1) problems.push(`ended twice: ${stream}: ${types.join(' ')}`);
  else if (types.join() !== expected.join()) problems.push(`unexpected: ${stream}: ${types.join(' ')}`);
  const numbers = events.filter(({ type }) => type === 'JobStepped.v1').map(({ data }) => Number(data['step']));
  if (numbers.some((number, index) => number !== index)) problems.push(`out of order: ${stream}: ${numbers.join(' ')}`);
  // An event causes one outcome: the next event of the job.
  const causes = repeated(events.slice(1), ({ metadata }) => String(metadata['$causationId']));
  return [...problems, ...causes.map((id) => `duplicated: ${stream} has two outcomes of the event ${id}`)];
}

function isEnd({ type }: LogEvent): boolean {
  return type === 'JobDone.v1' || type === 'JobFailed.v1';
}

function repeated(events: readonly LogEvent[], keyOf: (event: LogEvent) => string): string[] {
  return [...Map.groupBy(events, keyOf)].filter(([, group]) => group.length > 1).map(([key]) => key);
}
