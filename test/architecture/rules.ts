/** Each rule lists what breaks it, one line per place: `file: what`. The way of imports is down this list. */
import type { SourceFile, SourceTree } from './source-tree.ts';

export type Rule = (tree: SourceTree) => readonly string[];

interface Place {
  readonly layer: 'kernel' | 'platform' | 'feature' | 'service' | 'infra' | 'client' | 'test';
  /** Feature, role, or part of the infrastructure. */
  readonly part: string;
}

function placeOf(path: string): Place {
  const [top = '', second = '', third = ''] = path.split('/');
  // Tests beside the code may use what tests use.
  if (top === 'test' || path.endsWith('.test.ts')) return { layer: 'test', part: '' };
  if (top === 'services') return { layer: 'service', part: second };
  if (top === 'infra') return { layer: 'infra', part: second };
  if (second === 'client') return { layer: 'client', part: '' };
  if (second === 'kernel') return { layer: 'kernel', part: '' };
  if (second === 'features') return { layer: 'feature', part: third };
  return { layer: 'platform', part: third };
}

/** What infrastructure may know of the libraries: how to start and stop, what it is told, and files. Never a client. */
const OPEN_TO_INFRA = ['libs/kernel/', 'libs/platform/lifecycle/', 'libs/platform/config/', 'libs/platform/files/'];

/** Who may start infrastructure: the process that holds everything, the command that operates it, tests of others. */
const STARTS_INFRA = new Set(['standalone', 'cli', 'testing']);

/** Who speaks to a Parley from outside. */
const CLIENTS = new Set(['cli', 'testing']);

function mayImport(from: Place, to: Place, target: string): boolean {
  switch (from.layer) {
    case 'test':
      return true;
    case 'kernel':
      return to.layer === 'kernel';
    case 'platform':
      return to.layer === 'kernel' || to.layer === 'platform';
    case 'feature':
      return to.layer === 'kernel' || to.layer === 'platform' || to.layer === 'feature';
    case 'service':
      if (to.layer === 'client') return CLIENTS.has(from.part);
      return to.layer !== 'test' && (to.layer !== 'infra' || STARTS_INFRA.has(from.part));
    case 'client':
      // A package of its own: what it imports is installed with it.
      return to.layer === 'client';
    case 'infra':
      return (
        (to.layer === 'infra' && to.part === from.part) || OPEN_TO_INFRA.some((folder) => target.startsWith(folder))
      );
  }
}

/** kernel <- platform <- features <- services; tests see all, nobody sees tests. */
export const importsGoDown: Rule = (tree) =>
  ownImports(tree)
    .filter(({ from, target }) => !mayImport(placeOf(from), placeOf(target), target))
    .map(({ from, target }) => `${from}: must not import ${target}`);

const REACHED_THROUGH_INDEX = new Set<Place['layer']>(['feature', 'infra', 'client']);

/** Features, parts of the infrastructure and the client are reached from outside only through their `index.ts`. */
export const partsAreReachedThroughTheirIndex: Rule = (tree) =>
  ownImports(tree)
    .filter(({ from, target }) => {
      const [inside, outside] = [placeOf(target), placeOf(from)];
      if (outside.layer === 'test' || !REACHED_THROUGH_INDEX.has(inside.layer)) return false;
      const samePart = inside.layer === outside.layer && inside.part === outside.part;
      return !samePart && target.split('/').at(-1) !== 'index.ts';
    })
    .map(({ from, target }) => `${from}: must import the index.ts of ${target.split('/').slice(0, -1).join('/')}`);

/** Client libraries of stores, and the only folders that know them. Tests may: they look at stores from outside. */
const STORE_LIBRARIES: readonly { readonly library: RegExp; readonly folders: readonly string[] }[] = [
  { library: /^ioredis(\/|$)/, folders: ['libs/platform/'] },
  { library: /^@eventstore\/db-client$/, folders: ['libs/platform/eventstore/'] },
  // The embedded server speaks the client's own protocol, from the client's own definitions.
  {
    library: /^@eventstore\/db-client\/generated\//,
    folders: ['libs/platform/eventstore/', 'infra/embedded-eventstore/'],
  },
  { library: /^@grpc\//, folders: ['libs/platform/eventstore/', 'infra/embedded-eventstore/'] },
  { library: /^lmdb(\/|$)/, folders: ['infra/embedded-eventstore/'] },
  { library: /^kafkajs(\/|$)/, folders: ['libs/platform/kafka/'] },
];

export const storesAreReachedThroughThePlatform: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test')
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ target, own }) => !own && !mayUseLibrary(path, target))
        .map(({ target }) => `${path}: must not import ${target}`),
    );

function mayUseLibrary(path: string, library: string): boolean {
  return STORE_LIBRARIES.every(
    (rule) => !rule.library.test(library) || rule.folders.some((folder) => path.startsWith(folder)),
  );
}

/** The kernel and the deciders know no time, no chance and no world outside: these come with the command. */
const PURE_LIBRARIES = new Set(['uuid', 'zod', 'node:util', 'node:crypto']);
const IMPURE =
  /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bnewId\(|\brandomUUID\(|\bsystemClock\b|\bprocess\.|\bfetch\(/;

export const decidersArePure: Rule = (tree) =>
  [...tree.values()].flatMap((file) => {
    const decider = file.path.endsWith('.decider.ts');
    if (!decider && placeOf(file.path).layer !== 'kernel') return [];
    const libraries = file.imports.filter(({ target, own }) => !own && !PURE_LIBRARIES.has(target));
    const platform = file.imports.filter(({ target, own }) => own && placeOf(target).layer === 'platform');
    const impure = decider ? (IMPURE.exec(withoutComments(file))?.[0] ?? '') : '';
    return [
      ...[...libraries, ...platform].map(({ target }) => `${file.path}: is pure, must not import ${target}`),
      ...(impure === '' ? [] : [`${file.path}: is pure, must not use ${impure}`]),
    ];
  });

/** A key's text begins with the product's name, or holds a hash tag with something filled in. */
const REDIS_KEY = /['"`]parley:[^\s'"`]|[a-z]:\{\$\{/;

export const redisKeysStandInKeysFiles: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test' && !path.endsWith('.keys.ts'))
    .filter((file) => REDIS_KEY.test(withoutComments(file)))
    .map(({ path }) => `${path}: holds a Redis key, which belongs in a *.keys.ts`);

/** Configuration is parsed once: by `main.ts`, from the environment that it alone reads. */
const READS_ENVIRONMENT = new Set([
  // Whether there is a parent to watch is no setting of the operator's.
  'libs/platform/lifecycle/run-process.ts',
]);

export const environmentIsReadByMainOnly: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test' && path.endsWith('.ts') && !path.endsWith('/main.ts'))
    .filter((file) => !READS_ENVIRONMENT.has(file.path) && /\bprocess\.env\b/.test(withoutComments(file)))
    .map(({ path }) => `${path}: must not read process.env; take it from the configuration`);

/** Imports that are there when the program runs; types may refer to each other in circles. */
export const importsHaveNoCycles: Rule = (tree) => {
  const finished = new Set<string>();
  const way: string[] = [];
  const cycles: string[] = [];
  function visit(path: string): void {
    if (way.includes(path)) cycles.push(`${path}: ${[...way.slice(way.indexOf(path)), path].join(' -> ')}`);
    if (finished.has(path) || way.includes(path)) return;
    way.push(path);
    for (const { target, own, typeOnly } of tree.get(path)?.imports ?? []) if (own && !typeOnly) visit(target);
    way.pop();
    finished.add(path);
  }
  for (const path of tree.keys()) visit(path);
  return cycles;
};

export const importedFilesExist: Rule = (tree) =>
  ownImports(tree)
    .filter(({ target }) => /\.(ts|mjs)$/.test(target) && !tree.has(target))
    .map(({ from, target }) => `${from}: imports ${target}, which does not exist`);

export const namesSayWhatIsInside: Rule = (tree) =>
  [...tree.keys()]
    .filter((path) => /(^|[/.-])(utils?|helpers?|common|managers?|misc)([/.-]|$)/.test(path))
    .map((path) => `${path}: the name says nothing about what is inside`);

export const nothingIsLeftForLater: Rule = (tree) =>
  [...tree.values()]
    .filter(({ text }) => /\b(TO(?:)DO|FIX(?:)ME|XX(?:)X)\b/.test(text))
    .map(({ path }) => `${path}: says that something is left to do`);

/** Lines of code, without blank ones and comments. */
export const MOST_LINES = 320;

export const filesAreShort: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test' && !path.endsWith('.generated.ts'))
    .map((file) => ({ path: file.path, lines: linesOfCode(file) }))
    .filter(({ lines }) => lines > MOST_LINES)
    .map(({ path, lines }) => `${path}: ${lines} lines of code, more than ${MOST_LINES}`);

export function linesOfCode(file: SourceFile): number {
  return withoutComments(file)
    .split('\n')
    .filter((line) => line.trim() !== '').length;
}

function ownImports(tree: SourceTree): readonly { readonly from: string; readonly target: string }[] {
  return [...tree.values()].flatMap(({ path, imports }) =>
    imports.filter(({ own }) => own).map(({ target }) => ({ from: path, target })),
  );
}

function withoutComments({ text }: SourceFile): string {
  return text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
}
