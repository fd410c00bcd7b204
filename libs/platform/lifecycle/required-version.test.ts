import { expect, it } from 'vitest';

import { requireVersion } from './required-version.ts';

it('a library of another version is refused, with both versions', () => {
  expect(() => requireVersion('kafkajs', '0.1.0')).toThrow(
    /^Parley replaces internals of kafkajs 0\.1\.0, and \d+\.\d+\.\d+ is installed: install kafkajs@0\.1\.0$/,
  );
});
