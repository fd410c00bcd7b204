import { expect, it } from 'vitest';

import type { EventStore } from '#libs/platform/eventstore/index.ts';

import { KeyDirectory } from './key-directory.ts';

it('says that a key cannot be read when others have waited for a silent log for long', async () => {
  const silence = Promise.withResolvers<never>();
  let reads = 0;
  const store: Pick<EventStore, 'readStream'> = {
    readStream() {
      reads += 1;
      return { [Symbol.asyncIterator]: () => ({ next: () => silence.promise }) };
    },
  };
  const directory = new KeyDirectory({ store: store as EventStore });
  const waiting = Array.from({ length: 32 }, (_, n) => directory.byId(`key-${n}`));
  await expect(directory.byId('one-more')).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(reads).toBe(32);
  silence.reject(new Error('the end of the test'));
  await Promise.allSettled(waiting);
});
