import { describe, expect, it } from 'vitest';

import { Lookups } from './lookups.ts';

const name = { key: 'people', field: 'name' };
const age = { key: 'people', field: 'age' };
const marks = { key: 'marks', score: 7 };

describe('the look-ups of a batch of commands', () => {
  it('contain the values that were read, null for missing ones', () => {
    const { found, counted } = new Lookups([name, marks, age], ['Ada', 3, null]);
    expect([found(name), found(age), counted(marks)]).toEqual(['Ada', null, 3]);
  });

  it('are distinguished by key and field, also if their concatenations are equal', () => {
    const one = { key: 'a', field: 'b c' };
    const other = { key: 'a b', field: 'c' };
    const { found } = new Lookups([one, other], ['one', 'other']);
    expect([found(one), found(other)]).toEqual(['one', 'other']);
  });

  it('reject undeclared keys and fields', () => {
    const { found, counted } = new Lookups([name, marks], ['Ada', 3]);
    expect(() => found(age)).toThrow('people age was not declared');
    expect(() => counted({ ...marks, score: 8 })).toThrow('marks 8 was not declared');
  });

  it('throw the failure of the read when they are used', () => {
    const away = new Error('away');
    const lookups = new Lookups([], [], away);
    expect(() => lookups.found(name)).toThrow(away);
    expect(() => lookups.counted(marks)).toThrow(away);
    expect(() => lookups.learn([{ command: 'HSET', key: 'people', args: ['name', 'Bob'] }])).not.toThrow();
  });

  it('include the writes of earlier commands', () => {
    const lookups = new Lookups([name, age, marks], ['Ada', null, 3]);
    lookups.learn([
      { command: 'HSET', key: 'people', args: ['age', 36, 'name', 'Ada L.'] },
      { command: 'HDEL', key: 'people', args: ['name', 'else'] },
      { command: 'HSET', key: 'others', args: ['age', 1] },
      { command: 'ZADD', key: 'marks', args: [7, 'one more', 8, 'elsewhere', 7, 'and one'] },
      { command: 'SET', key: 'people', args: ['name'] },
    ]);
    expect([lookups.found(name), lookups.found(age), lookups.counted(marks)]).toEqual([null, '36', 5]);
  });

  it('do not include writes to undeclared fields', () => {
    const lookups = new Lookups([name], ['Ada']);
    lookups.learn([{ command: 'HSET', key: 'people', args: ['age', 36] }]);
    expect(() => lookups.found(age)).toThrow('was not declared');
  });
});
