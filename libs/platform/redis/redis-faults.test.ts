import { describe, expect, it } from 'vitest';

import { Fault } from '#libs/kernel/faults.ts';

import { redisFault } from './redis-faults.ts';

const replied = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });

describe('a reply of Redis that is an error', () => {
  it.each([
    "READONLY You can't write against a read only replica.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    'MISCONF Redis is configured to save RDB snapshots',
    "NOPERM this user has no permissions to run the 'fcall' command",
    "CROSSSLOT Keys in request don't hash to the same slot",
    'ERR max requests limit exceeded. Limit: 500000, Usage: 500000.',
    'ERR max number of clients reached',
    "ERR unknown command 'FCALL'",
    'NOAUTH Authentication required.',
    'LOADING Redis is loading the dataset in memory',
    'UNKILLABLE some code of another server',
  ])('is a fault of the store: %s', (message) => {
    expect(redisFault(replied(message))).toMatchObject({ code: 'store_unavailable' });
    expect(redisFault(replied(message))).toBeInstanceOf(Fault);
  });

  it.each([
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    "ERR wrong number of arguments for 'get' command",
    'ERR Function not found',
    'ERR user_function:3: attempt to index a nil value',
    'NOSCRIPT No matching script.',
  ])('is a bug: %s', (message) => {
    const error = replied(message);
    expect(redisFault(error)).toBe(error);
  });
});
