/** Installs servers, clients and suites that others wrote, once each, under node_modules. */
import { execFile } from 'node:child_process';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/parley-foreign-packages');

const run = promisify(execFile);

/** @returns the folder of the package. @throws Error with one line that names what is missing */
export function npmPackage(name: string, version: string, say: (line: string) => void): Promise<string> {
  const label = `${name.replaceAll(/[^a-z]+/g, '-')}-${version}`;
  return installed(label, `${name} ${version} from npm`, say, async (folder) => {
    await writeFile(join(folder, 'package.json'), '{"private":true}');
    await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', `${name}@${version}`], { cwd: folder });
  }).then((folder) => join(folder, 'node_modules', name));
}

/** @returns the path of a Python that has the package, and `others` with their newest versions. @throws as `npmPackage` */
export function pythonWith(
  name: string,
  version: string,
  python: string,
  say: (line: string) => void,
  others: readonly string[] = [],
): Promise<string> {
  return installed(`${name}-${version}`, `${name} ${version} from PyPI`, say, async (folder) => {
    await run(python, ['-m', 'venv', folder]);
    await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', '--quiet', `${name}==${version}`, ...others]);
  }).then((folder) => join(folder, 'bin/python'));
}

/** @returns a folder that `install` has filled, once. @throws as `npmPackage` */
export async function installed(
  label: string,
  what: string,
  say: (line: string) => void,
  install: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(CACHE, label);
  const mark = join(folder, 'is-installed');
  if ((await stat(mark).catch(() => undefined)) !== undefined) return folder;
  say(`installing ${what}, once`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await install(folder).catch((cause: unknown) => {
    throw new Error(`${what} could not be installed: ${String(cause).split('\n', 1)[0]}`, { cause });
  });
  await writeFile(mark, '');
  return folder;
}
