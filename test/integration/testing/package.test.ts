/** Parley, packed and installed in another project, whose tests and commands use it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { type InstalledParley, installParley } from '#test/support/parley-package.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

const root = join(import.meta.dirname, '../../..');
const GENEROUS = { timeout: 600_000 };

const CONSUMER = `
import { startParley } from 'parley/testing';
const parley = await startParley({ settings: { LOG_LEVEL: 'debug' } });
parley.url satisfies string;
const channel = await parley.createChannel({ name: 'Typed' });
channel.participants satisfies unknown[];
// @ts-expect-error a channel has no weather
channel.weather;
// @ts-expect-error there is no such setting
await startParley({ settings: { WEATHER: 'fine' } });
// @ts-expect-error there is no such scope
await parley.createKey({ scopes: ['all'] });
const { data } = await (await parley.createUser()).client.rest.GET('/api/v1/channels', {});
data?.items satisfies unknown[] | undefined;
await using other = await startParley();
await other.stop();
`;

/** The files that the text shows, by their names there. */
async function filesIn(document: string): Promise<Map<string, string>> {
  const text = await readFile(join(root, document), 'utf8');
  return new Map([...text.matchAll(/^```ts (\S+\.ts)\n([^]*?)^```/gm)].map(([, name = '', code = '']) => [name, code]));
}

describe('the packed Parley', GENEROUS, () => {
  let project: InstalledParley;
  let shown: Map<string, string>;

  beforeAll(async () => {
    project = await installParley(['@types/node', 'undici-types', 'vitest']);
    shown = await filesIn('docs/testing.md');
    await mkdir(join(project.folder, 'node-test'));
    await mkdir(join(project.folder, 'vitest'));
    for (const [name, code] of shown) {
      await writeFile(join(project.folder, 'node-test', name), code);
      await writeFile(join(project.folder, 'vitest', name), withVitest(code));
    }
  }, GENEROUS.timeout);
  afterAll(() => project?.remove());

  it('holds no TypeScript to run, no tests, and none of the set-up', async () => {
    const files = await readdir(join(project.folder, 'node_modules/parley'), { recursive: true });
    expect(files.filter((name) => /(?<!\.d)\.ts$|\.test\.|set-up/.test(name))).toEqual([]);
    expect(files).toContain('services/testing/index.d.ts');
    expect(files).toContain('README.md');
  });

  it('has types that its user can check with, and that are not loose', async () => {
    await writeFile(join(project.folder, 'consumer.ts'), CONSUMER);
    const compilerOptions = {
      strict: true,
      noEmit: true,
      exactOptionalPropertyTypes: true,
      allowImportingTsExtensions: true,
      target: 'es2022',
      module: 'nodenext',
      types: ['node'],
    };
    const include = ['consumer.ts', 'node-test', 'vitest'];
    await writeFile(join(project.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
    expect(await project.run(join(root, 'node_modules/.bin/tsc'), '-p', '.')).toBe('');
  });

  it('runs the example of docs/testing.md with the test runner of Node', async () => {
    expect([...shown.keys()]).toEqual(['bot.ts', 'bot.test.ts']);
    const output = await project.run(process.execPath, '--test', '--test-reporter=tap', 'node-test/bot.test.ts');
    expect(output).toMatch(/^# pass 1$/m);
    expect(output).toMatch(/^# fail 0$/m);
  });

  // In `vmThreads`, test files run in contexts of `node:vm` with a module loader of their own, as in Jest.
  it.runIf(IN_CAMPAIGN).each(['forks', 'vmThreads'])(
    'runs the example of docs/testing.md with Vitest in the pool %s',
    async (pool) => {
      const vitest = join(root, 'node_modules/vitest/vitest.mjs');
      const limits = ['--testTimeout=120000', '--hookTimeout=120000'];
      const report = join(project.folder, `${pool}.json`);
      const output = ['--reporter=json', `--outputFile.json=${report}`];
      await project.run(process.execPath, vitest, 'run', '--root', 'vitest', '--pool', pool, ...limits, ...output);
      expect(JSON.parse(await readFile(report, 'utf8'))).toMatchObject({
        success: true,
        numPassedTests: 1,
        numTotalTests: 1,
      });
    },
  );

  it('can be required', async () => {
    const code = "const { startParley } = require('parley/testing'); startParley().then((parley) => parley.stop());";
    expect(await project.run(process.execPath, '--input-type=commonjs', '--eval', code)).toBe('');
  });

  it('brings the command', async () => {
    const variables: unknown = JSON.parse(await project.run('npx', '--no-install', 'parley', 'config', '--json'));
    expect(variables).toContainEqual(expect.objectContaining({ name: 'PORT', value: '8080' }));
  });

  it('names the Node that the command needs when this one is too old', async () => {
    const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`;
    const command = join(project.folder, 'node_modules/parley/services/cli/main.js');
    await expect(
      project.run(
        process.execPath,
        '--import',
        `data:text/javascript,${encodeURIComponent(old)}`,
        command,
        '--version',
      ),
    ).rejects.toThrow(/^parley: Parley runs on Node 22\.13 or newer, and this is 20\.20\.2$/m);
    // What an old Node links before it runs the first line.
    const code = await readFile(command, 'utf8');
    expect([...code.matchAll(/^import .*'(.*)';$/gm)].map(([, name]) => name)).toEqual([
      'node:path',
      '../../libs/platform/config/memory.js',
      '../node-version.js',
      '../roles.js',
    ]);
  });

  it('runs Parley by the command', async () => {
    const { PATH = '', HOME = '' } = process.env;
    const compiled = { NODE_COMPILE_CACHE: join(project.folder, '../compiled') };
    const env = { PATH, HOME, ...compiled, PORT: '0', DATA_DIR: join(project.folder, 'data') };
    const command = join(project.folder, 'node_modules/.bin/parley');
    const running = spawn(process.execPath, [command, 'standalone'], { cwd: project.folder, env });
    try {
      let output = '';
      for (const stream of [running.stdout, running.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
      const url = await eventually(
        () => {
          const found = /"url":"(http:\/\/127\.0\.0\.1:\d+)",.*"Parley is running/.exec(output)?.[1];
          if (found === undefined) throw new Error(`not started: ${output}`);
          return found;
        },
        { timeoutMs: GENEROUS.timeout },
      );
      // Without a terminal, the log is JSON alone, and the generated key is in a file instead.
      const started = output
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { keyFile?: string });
      expect(output).not.toContain('parley_live_');
      const authorization = await readFile(started.find(({ keyFile }) => keyFile)?.keyFile ?? '', 'utf8');
      const headers = { authorization: authorization.trim() };
      // Lists are answered once the read models have been built.
      await eventually(async () => expect((await fetch(`${url}/api/v1/keys`, { headers })).status).toBe(200));
      const ended = once(running, 'exit');
      running.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
    } finally {
      running.kill('SIGKILL');
    }
  });
});

/** The change that the text describes. */
function withVitest(code: string): string {
  return code.replace(
    "import { after, before, test } from 'node:test';",
    "import { afterAll as after, beforeAll as before, test } from 'vitest';",
  );
}
