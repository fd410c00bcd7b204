/** The source as the rules see it: files by path, with their imports, types included. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

export interface Import {
  /** Path from the project's root for own files (`libs/kernel/ids.ts`), else the package (`ioredis`, `node:net`). */
  readonly target: string;
  readonly own: boolean;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

export type SourceTree = ReadonlyMap<string, SourceFile>;

/** Output of the client's build. */
const BUILT = 'libs/client/dist/';

const FOLDERS = ['libs', 'services', 'infra', 'test'];

export function readSourceTree(root: string): SourceTree {
  const paths = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|mjs)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
      .filter((path) => !path.startsWith(BUILT)),
  );
  // The test of the rules contains planted violations.
  const examined = paths.filter((path) => path !== 'test/architecture.test.ts');
  return sourceTree(Object.fromEntries(examined.map((path) => [path, readFileSync(join(root, path), 'utf8')])));
}

export function sourceTree(files: Readonly<Record<string, string>>): SourceTree {
  return new Map(Object.entries(files).map(([path, text]) => [path, { path, text, imports: importsOf(path, text) }]));
}

/** Formatted code starts a line with each static import, so a parser is not needed. */
const IMPORTS = [
  /^(?:import|export)\b[^;'"]*?\bfrom\s+['"]([^'"]+)['"]/gm,
  /^import\s+['"]([^'"]+)['"]/gm,
  /\bimport\(\s*['"]([^'"]+)['"]/g,
  /\brequire\(\s*['"]([^'"]+)['"]/g,
  /\bnew URL\(\s*['"](\.{1,2}\/[^'"]+\.ts)['"]\s*,\s*import\.meta\.url/g,
];

function importsOf(path: string, text: string): readonly Import[] {
  const code = text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
  return IMPORTS.flatMap((pattern) =>
    [...code.matchAll(pattern)].map(([, specifier = '']) => resolve(path, specifier)),
  );
}

function resolve(from: string, specifier: string): Import {
  if (specifier.startsWith('.')) return { target: normalize(join(dirname(from), specifier)), own: true };
  if (specifier.startsWith('#')) return { target: specifier.slice(1), own: true };
  return { target: specifier, own: false };
}
