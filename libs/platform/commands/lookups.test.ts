import { describe, expect, it } from 'vitest';

import { Lookups } from './lookups.ts';

const name = { key: 'people', field: 'name' };
const age = { key: 'people', field: 'age' };
const marks = { key: 'marks', score: 7 };

describe('what a batch of commands has looked up', () => {
  it('is what was found, null for what is not there', () => {
    const { found, counted } = new Lookups([name, marks, age], ['Ada', 3, null]);
    expect([found(name), found(age), counted(marks)]).toEqual(['Ada', null, 3]);
  });

  it('is told apart by key and by field, however they are written together', () => {
    const one = { key: 'a', field: 'b c' };
    const other = { key: 'a b', field: 'c' };
    const { found } = new Lookups([one, other], ['one', 'other']);
    expect([found(one), found(other)]).toEqual(['one', 'other']);
  });

  it('does not hold what was not declared', () => {
    const { found, counted } = new Lookups([name, marks], ['Ada', 3]);
    expect(() => found(age)).toThrow('people age was not declared');
    expect(() => counted({ ...marks, score: 8 })).toThrow('marks 8 was not declared');
  });

  it('fails those who ask, and nobody else, where nothing could be looked up', () => {
    const away = new Error('away');
    const lookups = new Lookups([], [], away);
    expect(() => lookups.found(name)).toThrow(away);
    expect(() => lookups.counted(marks)).toThrow(away);
    expect(() => lookups.learn([{ command: 'HSET', key: 'people', args: ['name', 'Bob'] }])).not.toThrow();
  });

  it('follows what the commands before write', () => {
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

  it('does not begin to hold what others write', () => {
    const lookups = new Lookups([name], ['Ada']);
    lookups.learn([{ command: 'HSET', key: 'people', args: ['age', 36] }]);
    expect(() => lookups.found(age)).toThrow('was not declared');
  });
});
