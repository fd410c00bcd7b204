import { describe, expect, it } from 'vitest';

import { LargeReplies } from './large-replies.ts';

const MIB = 1024 * 1024;

const values = new Map<string, Buffer>();

/** One buffer for each value: all answers together have gigabytes. */
function valueOf(name: string, bytes: number): Buffer {
  const key = `${name} ${bytes}`;
  const value = values.get(key) ?? Buffer.alloc(bytes, name);
  values.set(key, value);
  return value;
}

/** Answers on demand, and records the number of fields of each request. */
function slowHash(bytes: number) {
  const pending: (() => void)[] = [];
  const hash = {
    asked: [] as number[],
    mostAtATime: 0,
    fetch: async (some: readonly string[]): Promise<Buffer[]> => {
      hash.asked.push(some.length);
      await new Promise<void>((resolve) => {
        pending.push(resolve);
        hash.mostAtATime = Math.max(hash.mostAtATime, pending.length);
      });
      return some.map((name) => valueOf(name, bytes));
    },
    /** Answers one request after another until nothing more is asked for. */
    async answerAll(): Promise<void> {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        const next = pending.shift();
        if (next === undefined) return;
        next();
      }
    },
  };
  return hash;
}

const names = Array.from({ length: 100 }, (_, n) => String.fromCharCode(65 + (n % 26)));

describe('values of a hash', () => {
  it('are read at once while they are small', async () => {
    const [replies, hash] = [new LargeReplies(), slowHash(1_000)];
    for (let n = 0; n < 3; n++) {
      const reading = replies.read('h', names, hash.fetch);
      await hash.answerAll();
      expect((await reading).map((value) => value?.toString('utf8', 0, 1))).toEqual(names);
    }
    expect(hash.asked).toEqual([100, 100, 100]);
  });

  it('are read in pieces, few of them at a time and in order, once they are known to be large', async () => {
    const [replies, hash] = [new LargeReplies(), slowHash(MIB / 4)];
    const first = replies.read('h', names.slice(0, 3), hash.fetch);
    await hash.answerAll();
    await first;
    const readings = Array.from({ length: 10 }, () => replies.read('h', names, hash.fetch));
    await hash.answerAll();
    for (const values of await Promise.all(readings)) {
      expect(values.map((value) => value?.toString('utf8', 0, 1))).toEqual(names);
    }
    expect(Math.max(...hash.asked.slice(1))).toBe(8);
    expect(hash.mostAtATime).toBe(4);
  });

  it('of another hash do not wait for them', async () => {
    const [replies, large, small] = [new LargeReplies(), slowHash(MIB), slowHash(10)];
    const first = replies.read('large', names.slice(0, 1), large.fetch);
    await large.answerAll();
    await first;
    const readings = Array.from({ length: 10 }, () => replies.read('large', names, large.fetch));
    const reading = replies.read('small', names, small.fetch);
    await small.answerAll();
    expect(await reading).toHaveLength(100);
    await large.answerAll();
    await Promise.all(readings);
  });

  it('can be read on after one of the pieces has failed', async () => {
    const [replies, hash] = [new LargeReplies(), slowHash(MIB)];
    const first = replies.read('h', names.slice(0, 1), hash.fetch);
    await hash.answerAll();
    await first;
    const failing = Array.from({ length: 10 }, () => replies.read('h', names, () => Promise.reject(new Error('away'))));
    for (const one of failing) await expect(one).rejects.toThrow('away');
    const reading = replies.read('h', names, hash.fetch);
    await hash.answerAll();
    expect(await reading).toHaveLength(100);
  });
});
