/** Each rule lists its violations, one line each: `file: what`. */
import type { SourceFile, SourceTree } from './source-tree.ts';

export type Rule = (tree: SourceTree) => readonly string[];

interface Place {
  readonly layer: 'kernel' | 'platform' | 'feature' | 'service' | 'infra' | 'client' | 'test';
  /** Feature, role, or directory of the platform or the infrastructure. */
  readonly part: string;
}

/** Directories of `libs/platform`, lowest layer first. They import only from layers below their own, types included. */
const PLATFORM_LAYERS: readonly (readonly string[])[] = [
  ['bounded', 'caches', 'config', 'embedded-log', 'lifecycle', 'telemetry', 'files', 'protobuf'],
  ['eventstore', 'redis', 'websocket', 'fetch', 'blobs', 'textindex'],
  ['announcements', 'live', 'model', 'mcp', 'streams'],
  ['readmodel'],
  ['commands'],
  ['http'],
  ['kafka', 'reactors', 'entity'],
  ['runtime'],
];

function placeOf(path: string): Place {
  const [top = '', second = '', third = ''] = path.split('/');
  // Tests beside the code may import what other tests import.
  if (top === 'test' || path.endsWith('.test.ts')) return { layer: 'test', part: '' };
  if (top === 'services') return { layer: 'service', part: second };
  if (top === 'infra') return { layer: 'infra', part: second };
  if (second === 'client') return { layer: 'client', part: '' };
  if (second === 'kernel') return { layer: 'kernel', part: '' };
  if (second === 'features') return { layer: 'feature', part: third };
  return { layer: 'platform', part: third };
}

/** What infrastructure may import from the libraries, never a client of a store. */
const OPEN_TO_INFRA = [
  'libs/kernel/',
  ...['caches', 'lifecycle', 'config', 'embedded-log', 'files', 'protobuf'].map((folder) => `libs/platform/${folder}/`),
];

/** Services that may start infrastructure: the standalone process, the command line, and the package for tests. */
const STARTS_INFRA = new Set(['standalone', 'cli', 'testing']);

/** Services that call a running Parley through its public API. */
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
      // A package of its own: it is installed without the rest of the project.
      return to.layer === 'client';
    case 'infra':
      return (
        (to.layer === 'infra' && to.part === from.part) || OPEN_TO_INFRA.some((folder) => target.startsWith(folder))
      );
  }
}

/** kernel <- platform <- features <- services; tests may import everything, and only tests import tests. */
export const importsGoDown: Rule = (tree) =>
  ownImports(tree)
    .filter(({ from, target }) => !mayImport(placeOf(from), placeOf(target), target))
    .map(({ from, target }) => `${from}: must not import ${target}`);

export const platformImportsGoDown: Rule = (tree) =>
  ownImports(tree).flatMap(({ from, target }) => {
    const [importer, imported] = [placeOf(from), placeOf(target)];
    if (importer.layer !== 'platform' || imported.layer !== 'platform' || importer.part === imported.part) return [];
    const [layer, below] = [platformLayerOf(importer.part), platformLayerOf(imported.part)];
    if (layer === -1) return [`${from}: libs/platform/${importer.part} has no layer in PLATFORM_LAYERS`];
    return below !== -1 && below < layer ? [] : [`${from}: must not import ${target}, which is not in a lower layer`];
  });

function platformLayerOf(directory: string): number {
  return PLATFORM_LAYERS.findIndex((layer) => layer.includes(directory));
}

const ENTERED_BY_INDEX = new Set<Place['layer']>(['platform', 'feature', 'infra', 'client']);

/** Imported by `services/cli/main.ts`, which must not load the libraries of the other commands. */
const WITHOUT_IMPORTS = new Set(['libs/platform/config/memory.ts']);

/** Directories of the platform, features, parts of the infrastructure and the client are entered by their `index.ts`. */
export const directoriesAreEnteredByTheirIndex: Rule = (tree) =>
  ownImports(tree)
    .filter(({ from, target }) => {
      const [imported, importer] = [placeOf(target), placeOf(from)];
      if (importer.layer === 'test' || !ENTERED_BY_INDEX.has(imported.layer) || WITHOUT_IMPORTS.has(target))
        return false;
      const samePart = imported.layer === importer.layer && imported.part === importer.part;
      return !samePart && target.split('/').at(-1) !== 'index.ts';
    })
    .map(({ from, target }) => `${from}: must import the index.ts of ${target.split('/').slice(0, -1).join('/')}`);

/** Client libraries of stores, and the only directories that may import them. Tests may: they inspect stores directly. */
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
  { library: /^@(aws-sdk|smithy)\//, folders: ['libs/platform/blobs/'] },
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

/** Modules that open connections, and words that open them; parts that may use them. */
const OPENS_CONNECTIONS = /^(?:undici|axios|got|node-fetch|(?:node:)?(?:https|http2|dgram|dns|dns\/promises))$/;
const CONNECTS =
  /(?<![.\w#])fetch\(|\bglobalThis\.fetch\b|\bnew (?:WebSocket|EventSource)\(|^import (?!type\b)(?:[\w*]|[^;]*\b(?:request|get|connect|createConnection)\b)[^;]*\bfrom '(?:node:)?(?:http|net|tls)'/m;
const MAY_CONNECT = [
  'libs/platform/fetch/',
  // Connects to the Parley that its user names.
  'libs/client/',
  // Says why the client of the event store cannot connect.
  'libs/platform/eventstore/tls-problem.ts',
  // Asks the Redis that it has started on this machine.
  'infra/private-redis/ping.ts',
];

/**
 * Requests to addresses that come from outside go through the guarded fetcher. The clients of stores have libraries: also
 * that of S3, whose address the operator names, as that of Redis.
 */
export const requestsGoThroughTheFetcher: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test' && !MAY_CONNECT.some((part) => path.startsWith(part)))
    .filter(
      (file) =>
        file.imports.some(({ target, own }) => !own && OPENS_CONNECTIONS.test(target)) ||
        CONNECTS.test(withoutComments(file)),
    )
    .map(({ path }) => `${path}: must not open connections; use the fetcher of libs/platform/fetch`);

/** `libs/features/users/user.ts`, named after its folder in the singular, or with a fold: the events and decisions of an entity. */
const ENTITY_FILE = /^libs\/features\/(?:[a-z-]+\/)?([a-z-]*[a-rt-z])s?\/\1\.ts$/;
const PLAIN_FILE = /^libs\/features\/[a-z/-]+\.ts$/;
const FOLD = /^export const \w+Fold: Fold</m;
/** Declares and parses events. */
const EVENT_CODECS = 'libs/platform/eventstore/index.ts';

/** The kernel and the decisions of entities read no clock, no randomness and no store: commands bring what they need. */
const PURE_LIBRARIES = new Set(['uuid', 'zod', 'node:util', 'node:crypto']);
const IMPURE =
  /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bnewId\(|\brandomUUID\(|\bsystemClock\b|\bprocess\.|\bfetch\(/;

export const decidersArePure: Rule = (tree) =>
  [...tree.values()].flatMap((file) => {
    const decider = file.path.endsWith('.decider.ts') || isEntity(file);
    if (!decider && placeOf(file.path).layer !== 'kernel') return [];
    const libraries = file.imports.filter(({ target, own }) => !own && !PURE_LIBRARIES.has(target));
    const platform = file.imports.filter(({ target, own }) => own && isOutside(target, decider));
    const impure = decider ? (IMPURE.exec(withoutComments(file))?.[0] ?? '') : '';
    return [
      ...[...libraries, ...platform].map(({ target }) => `${file.path}: is pure, must not import ${target}`),
      ...(impure === '' ? [] : [`${file.path}: is pure, must not use ${impure}`]),
    ];
  });

function isEntity({ path, text }: SourceFile): boolean {
  return ENTITY_FILE.test(path) || (PLAIN_FILE.test(path) && FOLD.test(text));
}

function isOutside(target: string, isDecider: boolean): boolean {
  const { layer } = placeOf(target);
  return layer !== 'kernel' && layer !== 'feature' && !(isDecider && target === EVENT_CODECS);
}

/** A key's text begins with the product's name, or holds a hash tag with something filled in. */
const REDIS_KEY = /['"`]parley:[^\s'"`]|[a-z]:\{\$\{/;

export const redisKeysStandInKeysFiles: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test' && !path.endsWith('.keys.ts'))
    .filter((file) => REDIS_KEY.test(withoutComments(file)))
    .map(({ path }) => `${path}: holds a Redis key, which belongs in a *.keys.ts`);

/** Only `main.ts` reads the environment, and parses the configuration from it once. */
const READS_ENVIRONMENT = new Set([
  // The process that starts this one says whether to watch it; this is not a setting for operators.
  'libs/platform/lifecycle/run-process.ts',
]);

export const environmentIsReadByMainOnly: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test' && path.endsWith('.ts') && !path.endsWith('/main.ts'))
    .filter((file) => !READS_ENVIRONMENT.has(file.path) && /\bprocess\.env\b/.test(withoutComments(file)))
    .map(({ path }) => `${path}: must not read process.env; take it from the configuration`);

/** Between files, with imports of types. */
export const filesHaveNoCycles: Rule = (tree) =>
  cyclesOf(new Map([...tree.values()].map(({ path, imports }) => [path, imports.map(({ target }) => target)])));

/** Between features, and between services: they may form a cycle although their files do not. */
export const partsHaveNoCycles: Rule = (tree) => {
  const parts = new Map<string, Set<string>>();
  for (const { from, target } of ownImports(tree)) {
    const [importer, imported] = [partOf(from), partOf(target)];
    if (importer === null || imported === null || importer === imported) continue;
    parts.set(importer, (parts.get(importer) ?? new Set()).add(imported));
  }
  return cyclesOf(parts);
};

function partOf(path: string): string | null {
  const { layer, part } = placeOf(path);
  if (layer === 'feature') return `libs/features/${part}`;
  return layer === 'service' && !part.includes('.') ? `services/${part}` : null;
}

function cyclesOf(graph: ReadonlyMap<string, Iterable<string>>): readonly string[] {
  const finished = new Set<string>();
  const route: string[] = [];
  const cycles: string[] = [];
  function visit(node: string): void {
    if (route.includes(node)) cycles.push(`${node}: ${[...route.slice(route.indexOf(node)), node].join(' -> ')}`);
    if (finished.has(node) || route.includes(node)) return;
    route.push(node);
    for (const target of graph.get(node) ?? []) visit(target);
    route.pop();
    finished.add(node);
  }
  for (const node of graph.keys()) visit(node);
  return cycles;
}

/** Where texts are admitted and cut. */
const TEXT_FILE = 'libs/kernel/text.ts';
/**
 * A bound of texts is in the singular or in characters (`MAX_TITLE`, `MAX_PAGE_CHARS`), a bound of lists in the plural
 * (`MAX_TOOLS`); a number of its own in the source is taken for a bound of texts from 40 on.
 */
const CUTS = /\.(?:substring|substr|toWellFormed)\(|\.slice\(\s*0,\s*(?:\d+ \* )?(MAX_\w+|[\d_]+)(?: - 1)?\s*\)/g;
const BOUNDS_A_LIST = /^MAX_(?:\w*(?<!CHAR|CHARACTER|BYTE)S|RECENT|LISTED|ABSENT|ADDRESSES_TRIED)$/;

export const textsAreCutBetweenCharacters: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => path !== TEXT_FILE && !['test', 'infra', 'client'].includes(placeOf(path).layer))
    .flatMap((file) =>
      [...withoutComments(file).matchAll(CUTS)]
        .filter(([, bound]) => !(bound !== undefined && (BOUNDS_A_LIST.test(bound) || Number(bound) < 40)))
        .map(([cut]) => `${file.path}: ${cut} may split a character; use admitText`),
    );

export const importedFilesExist: Rule = (tree) =>
  ownImports(tree)
    .filter(({ target }) => /\.(ts|mjs)$/.test(target) && !tree.has(target))
    .map(({ from, target }) => `${from}: imports ${target}, which does not exist`);

/** Packages, whose users are outside of this repository. */
const PACKAGES = ['libs/client/', 'services/testing/'];

/** An `index.ts` is the surface of its folder, so it exports only names that another folder imports. */
export const exportsOfIndexesAreImported: Rule = (tree) => {
  const importers = Map.groupBy(ownImports(tree), ({ target }) => target);
  return [...tree.values()].flatMap(({ path, text }) => {
    if (!path.endsWith('/index.ts') || PACKAGES.some((folder) => path.startsWith(folder))) return [];
    const direct = (importers.get(path) ?? []).map(({ from }) => from);
    const above = direct.filter((from) => /^export \* from/m.test(tree.get(from)?.text ?? ''));
    const all = [...direct, ...above.flatMap((index) => (importers.get(index) ?? []).map(({ from }) => from))];
    const texts = all.map((from) => tree.get(from)?.text ?? '');
    const exported = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from/gm)].flatMap(([, list = '']) =>
      [...list.matchAll(/(\w+)\s*(?:,|$)/g)].map(([, name = '']) => name),
    );
    return exported
      .filter((name) => !texts.some((code) => new RegExp(`\\b${name}\\b`).test(code)))
      .map((name) => `${path}: exports ${name}, which no other folder imports`);
  });
};

/** Files named `main.ts` are where processes begin; those that end in `.d.ts` are read by the compiler alone. */
export const filesAreImported: Rule = (tree) => {
  const imported = new Set(ownImports(tree).map(({ target }) => target));
  return [...tree.keys()]
    .filter((path) => placeOf(path).layer !== 'test' && path.endsWith('.ts') && !/\/main\.ts$|\.d\.ts$/.test(path))
    .filter((path) => !imported.has(path))
    .map((path) => `${path}: no file imports it`);
};

export const namesSayWhatIsInside: Rule = (tree) =>
  [...tree.keys()]
    .filter((path) => /(^|[/.-])(utils?|helpers?|common|managers?|misc)([/.-]|$)/.test(path))
    .map((path) => `${path}: the name says nothing about what is inside`);

export const nothingIsLeftForLater: Rule = (tree) =>
  [...tree.values()]
    .filter(({ text }) => /\b(TO(?:)DO|FIX(?:)ME|XX(?:)X)\b/.test(text))
    .map(({ path }) => `${path}: says that something is left to do`);

/** With blank lines and comments. */
export const MAX_LINES = 320;

export const filesAreShort: Rule = (tree) =>
  [...tree.values()]
    .filter(({ path }) => placeOf(path).layer !== 'test' && !path.endsWith('.generated.ts'))
    .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > MAX_LINES)
    .map(({ path, lines }) => `${path}: ${lines} lines, more than ${MAX_LINES}`);

function ownImports(tree: SourceTree): readonly { readonly from: string; readonly target: string }[] {
  return [...tree.values()].flatMap(({ path, imports }) =>
    imports.filter(({ own }) => own).map(({ target }) => ({ from: path, target })),
  );
}

function withoutComments({ text }: SourceFile): string {
  return text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
}
