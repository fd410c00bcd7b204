// `npm start`: installs what is missing, then runs all of Parley in one process.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { become, root, setUp } from './run.mjs';
import { tellErrors } from './say.mjs';

await tellErrors(async () => {
  const node = await setUp({ redis: !process.env.REDIS_URL, development: false });
  const { flags, environment } = startOf(node);
  for (const [name, value] of Object.entries(environment)) process.env[name] ??= value;
  become(node, [...flags, join(root, 'services/standalone/main.ts'), ...process.argv.slice(2)]);
});

/** Asks the pinned Node: an older one that runs this script cannot import TypeScript. */
function startOf(node) {
  const file = pathToFileURL(join(root, 'libs/platform/config/memory.ts'));
  const code = `import { nodeStart } from '${file}'; console.log(JSON.stringify(nodeStart(process.env)));`;
  return JSON.parse(spawnSync(node, ['--input-type=module', '--eval', code], { encoding: 'utf8' }).stdout);
}
