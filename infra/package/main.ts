// `npm run package [folder]`: builds Parley as an npm package, parley-<version>.tgz.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildPackage, run } from './build-package.ts';

const root = join(import.meta.dirname, '../..');
const destination = resolve(process.argv[2] ?? '.');
const workshop = await mkdtemp(join(tmpdir(), 'parley-package-'));
try {
  const folder = await buildPackage(root, workshop);
  const output = await run('npm', ['pack', '--json', '--loglevel=error', '--pack-destination', destination], folder);
  const [packed] = JSON.parse(output) as [{ filename: string }];
  process.stdout.write(`${join(destination, packed.filename)}\n`);
} finally {
  await rm(workshop, { recursive: true, force: true });
}
