import { expect, it } from 'vitest';

import { oldNodeRefusal } from './node-version.ts';

it.each(['20.20.2', '22.12.0', '18.0.0'])('Node %s is refused, with the versions that are accepted', (version) => {
  expect(oldNodeRefusal(version)).toBe(`Parley runs on Node 22.13 or newer, and this is ${version}`);
});

it.each(['22.13.0', '23.0.0', '24.21.0'])('Node %s is accepted', (version) => {
  expect(oldNodeRefusal(version)).toBeNull();
});
