import { expect, it } from 'vitest';
import type { LogEvent } from '../log-reader.ts';
import { jobProblems } from './job-checker.ts';

/** The log of a job of two steps; each event is caused by the one before it. */
function log(...types: readonly string[]): LogEvent[] {
  let step = 0;
  return types.map((type, revision) => ({
    stream: 'job-1',
    revision,
    id: `event-${revision}`,
    type: `Job${type}.v1`,
    data:
      type === 'Requested' ? { steps: 2 } : type === 'Stepped' ? { step: step++, effect: `effect-${revision}` } : {},
    metadata: { $causationId: `event-${revision - 1}` },
  }));
}
const good = log('Requested', 'Stepped', 'Stepped', 'Done');

it('accepts a job whose steps were recorded once and that has ended', () => {
  expect(jobProblems(good)).toEqual([]);
});

it('finds a planted duplicate of an outcome, however it is disguised', () => {
  const duplicate = good.map((event) =>
    event.revision === 2 ? { ...event, metadata: { $causationId: 'event-0' } } : event,
  );
  expect(jobProblems(duplicate)).toEqual(['duplicated: job-1 has two outcomes of the event event-0']);
  const again = good.map((event) =>
    event.revision === 2 ? { ...event, data: { step: 0, effect: 'effect-1' } } : event,
  );
  expect(jobProblems(again)).toEqual(['out of order: job-1: 0 0', 'repeated: the effect effect-1']);
  const sameId = good.map((event) => (event.revision === 2 ? { ...event, id: 'event-1' } : event));
  expect(jobProblems(sameId)).toContain('repeated: the event event-1');
});

it('finds jobs that have not ended, have ended twice, or have ended with the wrong event', () => {
  expect(jobProblems(good.slice(0, 3))).toEqual(['open: job-1 has not ended: Requested Stepped Stepped']);
  const twice = jobProblems(log('Requested', 'Stepped', 'Stepped', 'Done', 'Failed'));
  expect(twice).toEqual(['ended twice: job-1: Requested Stepped Stepped Done Failed']);
  expect(jobProblems(log('Requested', 'Stepped', 'Failed'))).toEqual(['unexpected: job-1: Requested Stepped Failed']);
});
