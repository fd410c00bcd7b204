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
  ['otherwise says how to get another key', null, undefined, 'created at the first start; npx parley keys create'],
])('the banner %s', (_, apiKey, bootstrapKey, expected) => {
  const firstKey = { apiKey, file: null, shown, organizationId: '', userId: '' };
  const text = banner({ ...running, firstKey }, { bootstrapKey, command: 'npx parley' });
  expect(text).toContain(`  API key  ${expected}`);
  expect(text).not.toContain('secret');
});
