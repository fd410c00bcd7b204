import { expect, test } from 'vitest';

import { SharedCalls } from './shared-calls.ts';

/** Calls that end when the test says so. */
function controlled() {
  const begun: (PromiseWithResolvers<string> & { readonly key: string })[] = [];
  const shared = new SharedCalls((key: string) => {
    const call = { ...Promise.withResolvers<string>(), key };
    begun.push(call);
    return call.promise;
  });
  return { begun, shared };
}

test('callers that come during a call share one that begins after it', async () => {
  const { begun, shared } = controlled();
  const first = shared.of('ada');
  const later = [shared.of('ada'), shared.of('ada')];
  expect(begun).toHaveLength(1);
  begun[0]?.resolve('old');
  expect(await first).toBe('old');
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve('new');
  expect(await Promise.all(later)).toEqual(['new', 'new']);
  expect(begun).toHaveLength(2);
});

test('a caller after the end of a call begins a new one', async () => {
  const { begun, shared } = controlled();
  const first = shared.of('ada');
  begun[0]?.resolve('old');
  expect(await first).toBe('old');
  const second = shared.of('ada');
  expect(begun).toHaveLength(2);
  begun[1]?.resolve('new');
  expect(await second).toBe('new');
});

test('a call that fails fails for its callers only', async () => {
  const { begun, shared } = controlled();
  const first = shared.of('ada');
  const second = shared.of('ada');
  begun[0]?.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve('new');
  expect(await second).toBe('new');
});

test('calls with different keys do not wait for each other', () => {
  const { begun, shared } = controlled();
  void shared.of('ada');
  void shared.of('grace');
  expect(begun.map(({ key }) => key)).toEqual(['ada', 'grace']);
});
