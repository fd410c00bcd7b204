import { expect, it } from 'vitest';

import { pathOf } from './upgrades.ts';

it.each([
  ['/a/b', '/a/b'],
  ['/a/b?c=/d', '/a/b'],
  ['http://parley.example/a/b?ticket=x', '/a/b'],
  ['HTTPS://[::1]:8080/a', '/a'],
  ['/http://parley.example/a', '/http://parley.example/a'],
])('the path of %s is %s', (url, path) => {
  expect(pathOf({ url })).toBe(path);
});
