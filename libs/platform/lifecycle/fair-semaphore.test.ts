import { expect, it } from 'vitest';

import { FairSemaphore, QueueFull } from './fair-semaphore.ts';

/** Work that runs until it is ended; `order` notes what has started. */
function workOf(semaphore: FairSemaphore) {
  const order: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    order,
    async end(name: string): Promise<void> {
      ends.get(name)?.();
      await new Promise(setImmediate);
    },
    start(name: string, turn: { group?: string; signal?: AbortSignal } = {}): Promise<void> {
      return semaphore.run(() => {
        order.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      }, turn);
    },
  };
}

it('runs no more at a time than there are permits, and starts at once where one is free', async () => {
  const semaphore = new FairSemaphore({ permits: 2 });
  const work = workOf(semaphore);
  const all = ['a', 'b', 'c', 'd'].map((name) => work.start(name));
  expect(work.order).toEqual(['a', 'b']);
  expect(semaphore.isFree).toBe(false);
  await work.end('b');
  expect(work.order).toEqual(['a', 'b', 'c']);
  for (const name of ['a', 'c', 'd']) await work.end(name);
  await Promise.all(all);
  expect(semaphore.isFree).toBe(true);
});

it('lets groups take turns, whatever each of them has waiting', async () => {
  const work = workOf(new FairSemaphore({ permits: 1 }));
  const busy = ['a1', 'a2', 'a3', 'a4'].map((name) => work.start(name, { group: 'a' }));
  const others = ['b1', 'b2'].map((name) => work.start(name, { group: 'b' }));
  const late = work.start('c1', { group: 'c' });
  for (const name of ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']) await work.end(name);
  await Promise.all([...busy, ...others, late]);
  expect(work.order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
});

it('leaves permits to other groups, whatever the work of one waits for', async () => {
  const semaphore = new FairSemaphore({ permits: 3, permitsOfGroup: 2 });
  const work = workOf(semaphore);
  const busy = ['a1', 'a2', 'a3', 'a4'].map((name) => work.start(name, { group: 'a' }));
  expect(work.order).toEqual(['a1', 'a2']);
  const others = ['b1', 'b2'].map((name) => work.start(name, { group: 'b' }));
  expect(work.order).toEqual(['a1', 'a2', 'b1']);
  // The permit of `b1` is not for `a3`, whose group has two.
  await work.end('b1');
  expect(work.order).toEqual(['a1', 'a2', 'b1', 'b2']);
  for (const name of ['b2', 'a1', 'a2', 'a3', 'a4']) await work.end(name);
  await Promise.all([...busy, ...others]);
  expect(work.order).toEqual(['a1', 'a2', 'b1', 'b2', 'a3', 'a4']);
});

it('does not run work whose wait was cancelled', async () => {
  const work = workOf(new FairSemaphore({ permits: 1, maxWaiting: 2 }));
  const running = work.start('first');
  const abort = new AbortController();
  const given = work.start('given up', { signal: abort.signal });
  const kept = work.start('kept');
  abort.abort(new Error('gone'));
  await expect(given).rejects.toThrow('gone');
  const next = work.start('next');
  for (const name of ['first', 'kept', 'next']) await work.end(name);
  await Promise.all([running, kept, next]);
  expect(work.order).toEqual(['first', 'kept', 'next']);
  await expect(work.start('late', { signal: abort.signal })).rejects.toThrow('gone');
});

it('refuses work at once beyond what may wait in a group, and altogether', async () => {
  const work = workOf(new FairSemaphore({ permits: 1, maxWaitingInGroup: 1, maxWaiting: 2 }));
  const running = [work.start('a1', { group: 'a' }), work.start('a2', { group: 'a' })];
  await expect(work.start('a3', { group: 'a' })).rejects.toMatchObject({ scope: 'group' });
  running.push(work.start('b1', { group: 'b' }));
  await expect(work.start('c1', { group: 'c' })).rejects.toThrow(QueueFull);
  for (const name of ['a1', 'a2', 'b1']) await work.end(name);
  await Promise.all(running);
  expect(work.order).toEqual(['a1', 'a2', 'b1']);
});

it('gives the permit back when work fails', async () => {
  const semaphore = new FairSemaphore({ permits: 1 });
  await expect(semaphore.run(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  await expect(semaphore.run(() => Promise.resolve('fine'))).resolves.toBe('fine');
});
