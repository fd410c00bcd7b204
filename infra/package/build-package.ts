/**
 * Builds the npm package. Node does not run TypeScript below node_modules, so the package contains JavaScript and
 * declarations: the source is copied, its import specifiers are made relative, and it is compiled.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, extname, join, relative } from 'node:path';
import { portableSpecifiers, referencedFiles } from './specifiers.ts';

const FOLDERS = ['libs', 'services', 'infra'];
/** Programs that the build runs. */
const LEFT_OUT = /\.test\.ts$|\/(dist|node_modules)$|^infra\/(package|set-up)$/;
/** Files besides code that are read at run time. */
const ASSETS = new Set(['.lua', '.cjs']);

/** Copied unchanged. */
const COMPILATION = {
  extends: './tsconfig.base.json',
  compilerOptions: {
    rootDir: '.',
    outDir: '../package',
    noEmit: false,
    declaration: true,
    // The oldest Node of the package knows this target, by which `using` is translated.
    target: 'es2024',
    rewriteRelativeImportExtensions: true,
    // `npm run check` checks the same source.
    noCheck: true,
  },
  include: FOLDERS,
};

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** Entry points by module name: their declarations, and the file that is loaded. */
const ENTRIES = {
  './testing': ['services/testing/index.d.ts', 'services/testing/package-entry.cjs'],
  './testing/container': ['services/testing/parley-container.d.ts', 'services/testing/parley-container.js'],
} as const;
/** Needed by one entry point only, so users of the others need not install it. */
const OPTIONAL = 'testcontainers';

/**
 * @param workshop an empty folder
 * @returns the folder of the package, below `workshop`, ready to be packed
 * @throws Error with the output of the compiler, or the name of a file that the package would lack
 */
export async function buildPackage(root: string, workshop: string): Promise<string> {
  const [source, folder] = [join(workshop, 'source'), join(workshop, 'package')];
  await mkdir(source);
  await mkdir(folder);
  for (const name of FOLDERS) await copy(root, source, folder, name);
  await cp(join(root, 'tsconfig.json'), join(source, 'tsconfig.base.json'));
  await writeFile(join(source, 'tsconfig.json'), JSON.stringify(COMPILATION));
  await writeFile(join(source, 'package.json'), '{"type":"module"}');
  await symlink(join(root, 'node_modules'), join(source, 'node_modules'));
  // By default, four checkers infer the same types: together they take half as much again of the processors.
  await run(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.json', '--singleThreaded'], source);
  await writeManifest(root, folder);
  await chmod(join(folder, 'services/cli/main.js'), 0o755);
  await refuseMissing(folder);
  return folder;
}

/** Copies code to `source`, to be compiled, and other files to the package. */
async function copy(root: string, source: string, folder: string, path: string): Promise<void> {
  if (LEFT_OUT.test(path)) return;
  for (const entry of await readdir(join(root, path), { withFileTypes: true })) {
    const inside = `${path}/${entry.name}`;
    if (LEFT_OUT.test(inside)) continue;
    if (entry.isDirectory()) await copy(root, source, folder, inside);
    else if (extname(inside) === '.ts') {
      const text = await readFile(join(root, inside), 'utf8');
      await write(join(source, inside), portableSpecifiers(inside, text));
    } else if (ASSETS.has(extname(inside))) {
      await write(join(folder, inside), await readFile(join(root, inside), 'utf8'));
    }
  }
}

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

async function writeManifest(root: string, folder: string): Promise<void> {
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Manifest;
  const { name, version, description, license, devDependencies } = manifest;
  // Parley runs on the Node of the project that installs the package.
  const { node: _pinned, ...dependencies } = manifest.dependencies;
  const entries = Object.entries(ENTRIES).map(([entry, files]) => {
    if (!files.every((file) => existsSync(join(folder, file)))) {
      throw new Error(`${entry} is to be offered, and was not built`);
    }
    const [types, module] = files;
    return [entry, { types: `./${types}`, default: `./${module}` }];
  });
  const own = {
    name,
    version,
    description,
    license,
    type: 'module',
    // The same as for `startParley`.
    engines: { node: '>=22.13' },
    bin: { parley: 'services/cli/main.js' },
    exports: { ...Object.fromEntries(entries), './package.json': './package.json' },
    dependencies,
    peerDependencies: { [OPTIONAL]: `>=${devDependencies[OPTIONAL]}` },
    peerDependenciesMeta: { [OPTIONAL]: { optional: true } },
  };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(own, null, 2)}\n`);
  await cp(join(root, 'docs/testing.md'), join(folder, 'README.md'));
}

/** Checks that the package has the files that its code imports, and those that its code reads at run time. */
async function refuseMissing(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(js|d\.ts)$/.test(entry.name)) continue;
    const file = join(entry.parentPath, entry.name);
    for (const name of referencedFiles(await readFile(file, 'utf8'))) {
      // Declarations import the names of the sources.
      const existing = entry.name.endsWith('.d.ts') ? name.replace(/\.ts$/, '.d.ts') : name;
      if (existsSync(join(dirname(file), existing))) continue;
      throw new Error(`${relative(folder, file)} needs ${name}, which would not be in the package`);
    }
  }
}

/** Runs a program. @returns its standard output @throws Error with its output if it fails */
export function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${program} failed: ${error.message}\n${stdout}\n${stderr}`));
    });
  });
}
