// `npm run check`: the checks of the source that need no stores. All of them run, even after one has failed.
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { root, setUp } from './run.mjs';
import { tellErrors } from './say.mjs';

const checks = {
  // Both keep what they found of unchanged files in node_modules.
  types: ['tsc', '--noEmit', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/types.tsbuildinfo'],
  lint: ['oxlint'],
  format: ['prettier', '--check', '--cache', '--cache-strategy=content', '--log-level=warn', '.'],
  architecture: ['vitest', 'run', 'test/architecture.test.ts'],
};

await tellErrors(async () => {
  await setUp({ redis: false });
  const bin = join(root, 'node_modules/.bin');
  const asked = process.argv.slice(2);
  const failed = Object.entries(checks)
    .filter(([name]) => asked.length === 0 || asked.includes(name))
    .filter(([name, [command, ...args]]) => {
      const { status } = spawnSync(join(bin, command), args, {
        cwd: root,
        stdio: ['ignore', 'inherit', 'inherit'],
        env: { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) },
      });
      console.log(`${status === 0 ? 'ok    ' : 'FAILED'}  ${name}`);
      return status !== 0;
    });
  process.exit(failed.length === 0 ? 0 : 1);
});
