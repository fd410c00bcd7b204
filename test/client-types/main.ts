/** `npm run client:generate`: writes the client's types anew, from the API of this source. */
import { writeFile } from 'node:fs/promises';

import { startTestApi } from '#test/support/test-api.ts';

import { generatedTypes } from './generated-types.ts';

const api = await startTestApi();
try {
  const { json } = await api.call({ method: 'GET', url: '/openapi.json' });
  for (const { path, text } of await generatedTypes(json)) {
    await writeFile(path, text);
    process.stdout.write(`${path}\n`);
  }
} finally {
  await api.stop();
}
