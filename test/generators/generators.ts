/** The generators, with the options that the documentation names. */
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { rolldown } from 'rolldown';

/** Where one generator works. */
export interface Workshop {
  /** Empty at first, and removed at the end. */
  readonly folder: string;
  /** Where generators are installed. */
  readonly tools: string;
  /** The path of a document of Parley. */
  document(name: 'openapi' | 'openapi-3.0' | 'asyncapi'): string;
  /** @returns the output. @throws Error with the output */
  execute(
    program: string,
    args: readonly string[],
    options?: { readonly cwd?: string; readonly variables?: Readonly<Record<string, string>> },
  ): Promise<string>;
}

interface Generator {
  readonly version: string;
  run(workshop: Workshop): Promise<void>;
}

const PROGRAMS = join(import.meta.dirname, 'programs');

const NPM = {
  'openapi-typescript': '7.13.0',
  'openapi-fetch': '0.17.0',
  '@hey-api/openapi-ts': '0.99.0',
  orval: '8.38.0',
  typescript: '5.9.3',
  '@types/node': '24.19.2',
  '@redocly/cli': '2.77.0',
  '@stoplight/spectral-cli': '6.16.3',
  '@asyncapi/parser': '3.6.3',
};
const PYTHON_CLIENT = '0.29.1';
const OAPI_CODEGEN = '2.8.2';
const OPENAPI_GENERATOR = '7.16.0';

export const GENERATORS: Readonly<Record<string, Generator>> = {
  'openapi-typescript': {
    version: NPM['openapi-typescript'],
    async run(workshop) {
      await mkdir(join(workshop.folder, 'generated'));
      // Otherwise, members with a default are required in what is sent, too.
      const args = ['--default-non-nullable=false', '-o', 'generated/api.ts'];
      await runTool(workshop, 'openapi-typescript', [workshop.document('openapi'), ...args]);
      await runTypeScript(workshop, 'openapi-typescript');
    },
  },
  'hey-api': {
    version: NPM['@hey-api/openapi-ts'],
    async run(workshop) {
      await runTool(workshop, 'openapi-ts', ['-i', workshop.document('openapi'), '-o', 'generated']);
      await runTypeScript(workshop, 'hey-api');
    },
  },
  orval: {
    version: NPM.orval,
    async run(workshop) {
      const output = "{ target: 'generated/api.ts', client: 'fetch', baseUrl: process.env.PARLEY_URL }";
      const config = `export default { parley: { input: '${workshop.document('openapi')}', output: ${output} } };`;
      await writeFile(join(workshop.folder, 'orval.config.mjs'), config);
      await runTool(workshop, 'orval', ['--config', 'orval.config.mjs']);
      await runTypeScript(workshop, 'orval');
    },
  },
  'openapi-python-client': {
    version: PYTHON_CLIENT,
    async run(workshop) {
      const { folder, execute } = workshop;
      const bin = await pythonTools(workshop, [`openapi-python-client==${PYTHON_CLIENT}`, 'ruff']);
      // The type of parts of resumable uploads.
      const config = 'content_type_overrides: {application/offset+octet-stream: application/octet-stream}\n';
      await writeFile(join(folder, 'config.yaml'), config);
      const args = [
        'generate',
        '--path',
        workshop.document('openapi'),
        '--output-path',
        'made',
        '--config',
        'config.yaml',
      ];
      const output = await execute(join(bin, 'openapi-python-client'), args, {
        variables: { PATH: `${bin}:${process.env['PATH']}` },
      });
      if (/warning/i.test(output)) throw new Error(output);
      await execute(join(bin, 'python'), [join(PROGRAMS, 'openapi-python-client.py')], {
        variables: { PYTHONPATH: join(folder, 'made') },
      });
    },
  },
  'oapi-codegen': {
    version: OAPI_CODEGEN,
    async run(workshop) {
      const { folder, tools, execute } = workshop;
      const program = join(tools, 'oapi-codegen');
      const source = `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v${OAPI_CODEGEN}`;
      if (!existsSync(program)) await execute('go', ['install', source], { variables: { GOBIN: tools } });
      await mkdir(join(folder, 'parley'));
      const args = ['-generate', 'types,client', '-package', 'parley', '-o', 'parley/client.go'];
      await execute(program, [...args, workshop.document('openapi-3.0')]);
      await runGo(workshop, 'oapi-codegen');
    },
  },
  'openapi-generator-go': {
    version: OPENAPI_GENERATOR,
    async run(workshop) {
      const own =
        'enumClassPrefix=true,disallowAdditionalPropertiesIfNotPresent=false,useOneOfDiscriminatorLookup=true';
      await runOpenApiGenerator(workshop, 'go', [
        '--package-name=parley',
        `--additional-properties=${own},withGoMod=false`,
      ]);
      const made = join(workshop.folder, 'made');
      await mkdir(join(workshop.folder, 'parley'));
      for (const name of await readdir(made)) {
        if (name.endsWith('.go')) await cp(join(made, name), join(workshop.folder, 'parley', name));
      }
      await runGo(workshop, 'openapi-generator');
    },
  },
  'openapi-generator-java': {
    version: OPENAPI_GENERATOR,
    async run(workshop) {
      await runOpenApiGenerator(workshop, 'java', [
        '--library=jersey3',
        '--additional-properties=useSingleRequestParameter=true',
      ]);
      const cwd = join(workshop.folder, 'made');
      await cp(join(PROGRAMS, 'Flow.java'), join(cwd, 'src/main/java/Flow.java'));
      const flow = ['-Dexec.mainClass=Flow', '-Dexec.classpathScope=compile'];
      const goals = ['compile', 'org.codehaus.mojo:exec-maven-plugin:3.5.0:java'];
      await workshop.execute('mvn', ['-q', '-B', ...goals, ...flow], { cwd });
    },
  },
  'openapi-generator-python': {
    version: OPENAPI_GENERATOR,
    async run(workshop) {
      await runOpenApiGenerator(workshop, 'python', ['--package-name=parley']);
      const made = join(workshop.folder, 'made');
      const bin = await pythonTools(workshop, ['-r', join(made, 'requirements.txt')]);
      await workshop.execute(join(bin, 'python'), [join(PROGRAMS, 'openapi-generator.py')], {
        variables: { PYTHONPATH: made },
      });
    },
  },
  redocly: {
    version: NPM['@redocly/cli'],
    async run(workshop) {
      const documents = [workshop.document('openapi'), workshop.document('openapi-3.0')];
      const output = await runTool(workshop, 'redocly', ['lint', ...documents]);
      if (/You have \d+ (?:warning|error)/.test(output)) throw new Error(output);
    },
  },
  spectral: {
    version: NPM['@stoplight/spectral-cli'],
    async run(workshop) {
      await writeFile(join(workshop.folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n');
      const documents = ['openapi', 'openapi-3.0'] as const;
      const paths = documents.map((name) => workshop.document(name));
      await runTool(workshop, 'spectral', ['lint', ...paths, '--ruleset', '.spectral.yaml', '--fail-severity=info']);
    },
  },
  'asyncapi-parser': {
    version: NPM['@asyncapi/parser'],
    async run(workshop) {
      await linkPackages(workshop);
      await cp(join(PROGRAMS, 'asyncapi-parser.mjs'), join(workshop.folder, 'program.mjs'));
      await workshop.execute(process.execPath, ['program.mjs', workshop.document('asyncapi')]);
    },
  },
};

/** Runs a program of a package of npm. */
async function runTool(workshop: Workshop, name: string, args: readonly string[]): Promise<string> {
  const programs = join(await installPackages(workshop), '.bin');
  return workshop.execute(join(programs, name), args, { cwd: workshop.folder });
}

/** For programs of this folder that import the packages. */
async function linkPackages(workshop: Workshop): Promise<void> {
  await symlink(await installPackages(workshop), join(workshop.folder, 'node_modules'));
}

/** @returns the folder of the packages of npm */
async function installPackages({ tools, execute }: Workshop): Promise<string> {
  const packages = Object.entries(NPM).map(([one, version]) => `${one}@${version}`);
  const installed = join(tools, 'npm');
  const complete = join(installed, 'complete');
  // Also of a version of this list.
  if (!existsSync(complete) || (await readFile(complete, 'utf8')) !== packages.join()) {
    await mkdir(installed, { recursive: true });
    await writeFile(join(installed, 'package.json'), '{"private":true}');
    await execute('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages], { cwd: installed });
    await writeFile(complete, packages.join());
  }
  return join(installed, 'node_modules');
}

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    skipLibCheck: true,
    types: ['node'],
  },
  include: ['**/*.ts'],
};

/** Checks the types of the program and of the generated files, and runs the program. */
async function runTypeScript(workshop: Workshop, name: string): Promise<void> {
  const { folder, execute } = workshop;
  await cp(join(PROGRAMS, `${name}.ts`), join(folder, 'program.ts'));
  await linkPackages(workshop);
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  await runTool(workshop, 'tsc', ['-p', '.']);
  const bundle = await rolldown({ input: join(folder, 'program.ts'), platform: 'node' });
  await bundle.write({ file: join(folder, 'program.mjs') });
  await bundle.close();
  await execute(process.execPath, ['program.mjs']);
}

/** @returns the folder of the programs of an environment with the packages */
async function pythonTools({ tools, execute }: Workshop, packages: readonly string[]): Promise<string> {
  const bin = join(tools, 'python/bin');
  if (!existsSync(bin)) await execute('python3', ['-m', 'venv', join(tools, 'python')]);
  await execute(join(bin, 'pip'), ['install', '--quiet', ...packages]);
  return bin;
}

/** Builds and runs the program with the package `parley` in the folder. */
async function runGo({ folder, execute }: Workshop, name: string): Promise<void> {
  await cp(join(PROGRAMS, `${name}.go`), join(folder, 'main.go'));
  await writeFile(join(folder, 'go.mod'), 'module example.org/flow\n\ngo 1.24\n');
  await execute('go', ['mod', 'tidy']);
  await execute('go', ['vet', './...']);
  await execute('go', ['build', '-o', 'flow', '.']);
  await execute(join(folder, 'flow'), []);
}

async function runOpenApiGenerator(workshop: Workshop, language: string, args: readonly string[]): Promise<void> {
  const { tools, execute } = workshop;
  const jar = join(tools, `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`);
  if (!existsSync(jar)) {
    const copy = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy';
    const artifact = `-Dartifact=org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`;
    await execute('mvn', ['-q', '-B', copy, artifact, `-DoutputDirectory=${tools}`]);
  }
  const parts = '--global-property=apiTests=false,modelTests=false,apiDocs=false,modelDocs=false';
  const input = ['-i', workshop.document('openapi-3.0'), '-g', language, '-o', 'made', parts];
  const output = await execute('java', ['-jar', jar, 'generate', ...input, ...args]);
  if (/\bERROR\b/.test(output)) throw new Error(output.slice(0, 2_000));
}
