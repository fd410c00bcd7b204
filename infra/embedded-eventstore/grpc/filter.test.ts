import streams from '@eventstore/db-client/generated/streams_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import { describe, expect, test } from 'vitest';
import { CallError } from './errors.ts';
import { createFilter, parseFilter } from './filter.ts';

const { FilterOptions } = streams.ReadReq.Options;
const event = { type: 'OrderPlaced', stream: 'order-12' };

describe('a filter', () => {
  test.each([
    ['type', { regex: '', prefixes: ['Order'] }, true],
    ['type', { regex: '', prefixes: ['Invoice', 'OrderP'] }, true],
    ['type', { regex: '', prefixes: ['order-'] }, false],
    ['type', { regex: '^Order(Placed|Paid)$', prefixes: [] }, true],
    ['type', { regex: '^[^$].*', prefixes: [] }, true],
    ['type', { regex: '^Placed', prefixes: [] }, false],
    ['stream', { regex: '', prefixes: ['order-'] }, true],
    ['stream', { regex: '', prefixes: ['Order'] }, false],
    ['stream', { regex: '-\\d+$', prefixes: [] }, true],
    ['stream', { regex: 'placed', prefixes: [] }, false],
  ] as const)('by %s with %o matches: %s', (on, expression, matches) => {
    expect(createFilter({ on, ...expression })(event)).toBe(matches);
  });

  test('by a regular expression ignores prefixes', () => {
    expect(createFilter({ on: 'type', regex: '^Invoice', prefixes: ['Order'] })(event)).toBe(false);
  });

  test.each([
    { regex: '', prefixes: [] },
    { regex: '(', prefixes: [] },
  ])('with an invalid expression is refused: %o', (expression) => {
    expect(() => createFilter({ on: 'type', ...expression })).toThrow(CallError);
  });
});

describe('the checkpoint interval', () => {
  const options = () => new FilterOptions().setEventType(new FilterOptions.Expression().setRegex('.'));

  test('is the search window times the multiplier', () => {
    const filter = parseFilter(options().setMax(10).setCheckpointintervalmultiplier(3));
    expect(filter.checkpointInterval).toBe(30);
  });

  test('has a default window of 32', () => {
    const filter = parseFilter(options().setCount(new shared.Empty()).setCheckpointintervalmultiplier(2));
    expect(filter.checkpointInterval).toBe(64);
  });
});
