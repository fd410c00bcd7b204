import { describe, expect, it } from 'vitest';
import { candidatesOf } from '#test/images/images.mjs';
import { modeOf } from './choice.ts';

describe('stores of the tests', () => {
  it('are looked for in Docker by the test runner, and nowhere else unless that is asked for', () => {
    expect(modeOf({ VITEST: 'true' })).toBe('auto');
    expect(modeOf({})).toBe('native');
    expect(modeOf({ PARLEY_TEST_STORES: 'containers' })).toBe('containers');
    expect(modeOf({ VITEST: 'true', PARLEY_TEST_STORES: 'native' })).toBe('native');
  });

  it('come from nowhere that nobody has heard of', () => {
    expect(() => modeOf({ PARLEY_TEST_STORES: 'cloud' })).toThrow('auto, native, containers, not cloud');
  });

  it('are of an image of a registry, else of one that was built here, else of the one that is named alone', () => {
    expect(candidatesOf('kafka', {})).toEqual([expect.stringMatching(/^apache\/kafka:/), 'parley-local/kafka:1']);
    expect(candidatesOf('kafka', { PARLEY_IMAGE_KAFKA: 'mine:2' })).toEqual(['mine:2']);
  });
});
