import { expect, it } from 'vitest';

import { banner } from './run.ts';

const running = { baseUrl: 'http://127.0.0.1:8080', dataDir: '/data' };
const shown = async (): Promise<void> => undefined;

it.each([
  [
    'shows a key that was created at this start',
    'parley_live_x',
    undefined,
    'parley_live_x   (shown only now: keep it)',
  ],
  ['names the variable that holds the key', null, 'secret', 'that of PARLEY_BOOTSTRAP_KEY;'],
  ['otherwise says how to get another key', null, undefined, 'shown at the first start;'],
])('the banner %s', (_, apiKey, bootstrapKey, expected) => {
  const text = banner({ ...running, firstKey: { apiKey, shown, organizationId: '', userId: '' } }, bootstrapKey);
  expect(text).toContain(`  API key  ${expected}`);
  expect(text).not.toContain('secret');
});
