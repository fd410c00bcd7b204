/** Parley as other projects install it: built, packed, and unpacked in a folder without any other part of Parley. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { installClient } from './client-package.ts';

const root = join(import.meta.dirname, '../..');

export interface InstalledParley {
  /** Has a `node_modules` with Parley, its client, and their dependencies. */
  readonly folder: string;
  /** Runs a program in the folder to its end. Rejects, with its output, when it fails. */
  run(program: string, ...args: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** @param tools further packages of the project, such as its test runner; linked to ours */
export async function installParley(tools: readonly string[]): Promise<InstalledParley> {
  const { folder, remove } = await installClient();
  try {
    const packed = join(folder, '..', 'packed');
    await mkdir(packed);
    const tarball = await execute(process.execPath, [join(root, 'infra/package/main.ts'), packed], folder);
    const modules = join(folder, 'node_modules');
    await mkdir(join(modules, 'parley'));
    await execute('tar', ['-xzf', tarball.trim(), '--strip-components=1', '-C', join(modules, 'parley')], folder);
    // Without a registry: the dependencies are linked from our installation, without development dependencies.
    for (const name of [...(await runtimePackages()), ...tools]) await link(modules, name);
    await mkdir(join(modules, '.bin'), { recursive: true });
    await symlink('../parley/services/cli/main.js', join(modules, '.bin/parley'));
  } catch (error) {
    await remove();
    throw error;
  }
  return { folder, remove, run: (program, ...args) => execute(program, args, folder) };
}

/** By the lock file, with transitive dependencies. */
async function runtimePackages(): Promise<string[]> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev }]) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && dev !== true)
    .map(([path]) => path.slice('node_modules/'.length));
}

async function link(modules: string, name: string): Promise<void> {
  const [ours, theirs] = [join(root, 'node_modules', name), join(modules, name)];
  // Optional packages of other platforms are not installed; those of the client are.
  if (!existsSync(ours) || existsSync(theirs)) return;
  await mkdir(dirname(theirs), { recursive: true });
  await symlink(ours, theirs);
}

async function execute(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { PATH = '', HOME = '' } = process.env;
  const env = {
    // Puts the Node of the tests on the PATH.
    PATH: `${dirname(process.execPath)}:${PATH}`,
    HOME,
    // Compiled code of one program is used by the next.
    NODE_COMPILE_CACHE: join(cwd, '..', 'compiled'),
    // The compiler, which is a Go program, otherwise spends a third of its time on the collection of garbage.
    GOGC: '300',
  };
  try {
    return (await promisify(execFile)(program, [...args], { cwd, env, maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}
