/** The client as its users install it: built, packed, and installed in a folder without any other part of Parley. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { oncePerRun } from './once-per-run.ts';

const root = join(import.meta.dirname, '../..');

export interface InstalledClient {
  /** Has a `node_modules` with the client and its dependencies. */
  readonly folder: string;
  /** Runs a script in the folder with the Node of the tests. Rejects, with its output, when the program fails. */
  node(...args: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** Each caller gets a copy of one installation. */
export async function installClient(): Promise<InstalledClient> {
  const installed = join(await oncePerRun('client', install), 'consumer');
  const parent = await mkdtemp(join(tmpdir(), 'parley-test-client-'));
  const folder = join(parent, 'consumer');
  await cp(installed, folder, { recursive: true, verbatimSymlinks: true });
  return {
    folder,
    remove: () => rm(parent, { recursive: true, force: true }),
    node: (...args) => execute(process.execPath, args, folder),
  };
}

/** Builds and packs the client, and installs it in a folder `consumer`. */
async function install(parent: string): Promise<void> {
  const folder = join(parent, 'consumer');
  await mkdir(folder);
  const client = await packClient(parent);
  // Without a registry: packs the client's dependencies from our own installation.
  const others = await Promise.all(
    ['openapi-fetch', 'openapi-typescript-helpers'].map(async (name) => [name, await pack(parent, name)]),
  );
  const dependencies = Object.fromEntries([['@parley/client', client], ...others]);
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies, overrides: overridesOf(dependencies) }),
  );
  await npm(folder, 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund');
}

/** Overrides keep npm from fetching any transitive dependency. */
function overridesOf({ '@parley/client': _client, ...others }: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.keys(others).map((name) => [name, `$${name}`]));
}

/**
 * Built in a copy, because other tests may build at the same time. The programs of packages are not on its path: after
 * `npm start`, that of the compiler is missing until the build has installed it.
 */
async function packClient(parent: string): Promise<string> {
  const copy = join(parent, 'source');
  const folder = join(copy, 'libs/client');
  await mkdir(folder, { recursive: true });
  for (const file of ['package.json', 'README.md', 'tsconfig.json', 'tsconfig.build.json', 'src']) {
    await cp(join(root, 'libs/client', file), join(folder, file), { recursive: true });
  }
  for (const path of ['tsconfig.json', 'package-lock.json', 'infra/set-up']) {
    await cp(join(root, path), join(copy, path), { recursive: true });
  }
  const modules = join(root, 'node_modules');
  await mkdir(join(copy, 'node_modules'));
  for (const name of await readdir(modules)) {
    if (name !== '.bin') await symlink(join(modules, name), join(copy, 'node_modules', name));
  }
  return tarballIn(parent, await npm(folder, 'pack', '--json', '--pack-destination', parent));
}

async function pack(parent: string, name: string): Promise<string> {
  const folder = join(root, 'node_modules', name);
  return tarballIn(
    parent,
    await npm(parent, 'pack', folder, '--json', '--ignore-scripts', '--pack-destination', parent),
  );
}

function tarballIn(parent: string, output: string): string {
  // An earlier build may have written to it.
  const [packed] = JSON.parse(output.slice(output.search(/^\[$/m))) as [{ filename: string }];
  return `file:${join(parent, packed.filename)}`;
}

function npm(folder: string, ...args: string[]): Promise<string> {
  return execute('npm', [...args, '--loglevel=error'], folder);
}

async function execute(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { HOME = '', PATH = '' } = process.env;
  const folders = PATH.split(delimiter).filter((folder) => !folder.endsWith('.bin'));
  const env = { HOME, PATH: [dirname(process.execPath), ...folders].join(delimiter) };
  const { stdout } = await promisify(execFile)(program, [...args], { cwd, env });
  return stdout;
}
