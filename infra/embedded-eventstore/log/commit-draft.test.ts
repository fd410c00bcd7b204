import { expect, test } from 'vitest';
import { RecentIds } from './commit-draft.ts';

const written = { stream: 's', revision: 3, position: 4 };

test('an id is found in its own stream only', () => {
  const ids = new RecentIds();
  ids.add({ ...written, id: 'a' });
  expect(ids.find('s', 'a')).toMatchObject({ revision: 3, position: 4 });
  expect(ids.find('other', 'a')).toBeUndefined();
  expect(ids.find('s', 'b')).toBeUndefined();
});

test('the oldest ids are evicted when the memory is full, even if they were looked up', () => {
  const ids = new RecentIds(1000);
  ids.add({ ...written, id: 'first' });
  for (let i = 0; i < 20; i++) {
    ids.find('s', 'first');
    ids.add({ ...written, id: `later-${i}` });
  }
  expect(ids.find('s', 'first')).toBeUndefined();
  expect(ids.find('s', 'later-19')).toBeDefined();
});
