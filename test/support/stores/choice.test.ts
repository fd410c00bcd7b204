import { describe, expect, it } from 'vitest';
import { candidatesOf } from '#test/images/images.mjs';
import { modeOf } from './choice.ts';

describe('stores of the tests', () => {
  it('come from Docker by default in the test runner only', () => {
    expect(modeOf({ VITEST: 'true' })).toBe('auto');
    expect(modeOf({})).toBe('native');
    expect(modeOf({ PARLEY_TEST_STORES: 'containers' })).toBe('containers');
    expect(modeOf({ VITEST: 'true', PARLEY_TEST_STORES: 'native' })).toBe('native');
  });

  it('are refused where PARLEY_TEST_STORES has an unknown value', () => {
    expect(() => modeOf({ PARLEY_TEST_STORES: 'cloud' })).toThrow('auto, native, containers, not cloud');
  });

  it('use a registry or locally built image, or only the one that the environment names', () => {
    expect(candidatesOf('kafka', {})).toEqual([expect.stringMatching(/^apache\/kafka:/), 'parley-local/kafka:1']);
    expect(candidatesOf('kafka', { PARLEY_IMAGE_KAFKA: 'mine:2' })).toEqual(['mine:2']);
  });
});
