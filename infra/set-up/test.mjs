// `npm test`: installs what is missing, then runs all tests, or those that the arguments select.
import { join } from 'node:path';
import { become, root, setUp } from './run.mjs';
import { tellErrors } from './say.mjs';

await tellErrors(async () => {
  const node = await setUp({ redis: true });
  // Worker processes, threads and programs that tests start load code that an earlier one has compiled.
  process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/compiled-tests');
  become(node, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', root, ...process.argv.slice(2)]);
});
