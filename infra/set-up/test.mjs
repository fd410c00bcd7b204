// `npm test`: installs what is missing, then runs all tests, or those that the arguments select.
import { join } from 'node:path';
import { become, root, setUp } from './run.mjs';
import { tellErrors } from './say.mjs';

await tellErrors(async () => {
  const node = await setUp({ redis: true });
  become(node, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', root, ...process.argv.slice(2)]);
});
