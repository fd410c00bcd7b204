import { expect, it } from 'vitest';

import { PastReads, type PastReader } from './past-reads.ts';

const reader = (organizationId: string, address: string, signal = new AbortController().signal): PastReader => ({
  organizationId,
  address,
  signal,
});
const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : error);

/** Reads whose duration is set by the test. */
function timedReads(limits: ConstructorParameters<typeof PastReads>[0] = {}) {
  const clock = { ms: 0 };
  const reads = new PastReads(limits, () => clock.ms);
  return {
    clock,
    reads,
    spend: (of: PastReader, ms: number): Promise<unknown> =>
      reads
        .run(of, async () => {
          clock.ms += ms;
          return 'read';
        })
        .catch(codeOf),
  };
}

/** Reads that run until they are ended; `order` notes what has begun. */
function heldReads() {
  const reads = new PastReads({ rateLimits: { perKey: false, perAddress: false } });
  const order: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    order,
    start: (name: string, of: PastReader): Promise<unknown> =>
      reads
        .run(of, () => {
          order.push(name);
          return new Promise((resolve) => ends.set(name, () => resolve(name)));
        })
        .catch(codeOf),
    async endAll(): Promise<void> {
      while (ends.size > 0) {
        for (const [name, end] of ends) {
          ends.delete(name);
          end();
        }
        await new Promise(setImmediate);
      }
    },
  };
}

it('lets an organization read for five seconds, and then for a quarter of the time', async () => {
  const { clock, reads, spend } = timedReads();
  const one = reader('one', 'a');
  expect(await spend(one, 3_000)).toBe('read');
  expect(await spend(one, 3_000)).toBe('read');
  await expect(reads.run(one, () => Promise.resolve())).rejects.toMatchObject({
    status: 429,
    headers: { 'retry-after': '1' },
  });
  expect(await spend(reader('two', 'b'), 1_000)).toBe('read');
  clock.ms += 4_000;
  expect(await spend(one, 10)).toBe('read');
});

it('counts an address as well, whatever organizations it reads for', async () => {
  const { spend } = timedReads();
  for (const organization of ['one', 'two']) expect(await spend(reader(organization, 'a'), 4_000)).toBe('read');
  expect(await spend(reader('three', 'a'), 1)).toBe('rate_limited');
  expect(await spend(reader('three', 'b'), 1)).toBe('read');
});

it('charges nothing for reads that fail, and nothing where limits are switched off', async () => {
  const { clock, reads, spend } = timedReads();
  const one = reader('one', 'a');
  const failing = reads.run(one, async () => {
    clock.ms += 60_000;
    throw new Error('the store is away');
  });
  await expect(failing).rejects.toThrow('the store is away');
  expect(await spend(one, 1)).toBe('read');
  const unlimited = timedReads({ rateLimits: { perKey: false, perAddress: false } });
  for (let n = 0; n < 10; n++) expect(await unlimited.spend(one, 60_000)).toBe('read');
});

it('runs two at a time, organizations in turn, and refuses what is too much for the queue of one', async () => {
  const { order, start, endAll } = heldReads();
  const crowd = Array.from({ length: 36 }, (_, n) => start(`one ${n}`, reader('one', 'a')));
  const other = start('two', reader('two', 'b'));
  expect(order).toEqual(['one 0', 'one 1']);
  expect(await Promise.all(crowd.slice(34))).toEqual(['rate_limited', 'rate_limited']);
  await endAll();
  expect(order.indexOf('two')).toBe(3);
  expect(await other).toBe('two');
  expect(await Promise.all(crowd.slice(0, 34))).toHaveLength(34);
});

it('forgets a read that waits when its answer is no longer wanted', async () => {
  const { order, start, endAll } = heldReads();
  const gone = new AbortController();
  const running = [start('first', reader('one', 'a')), start('second', reader('one', 'a'))];
  const waiting = start('third', reader('one', 'a', gone.signal));
  gone.abort();
  expect(await waiting).toBe('overloaded');
  await endAll();
  await Promise.all(running);
  expect(order).toEqual(['first', 'second']);
});
