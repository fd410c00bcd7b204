/**
 * `npm run test:generators [-- name…]`: makes clients of Parley with public code generators, compiles them, and runs one
 * flow with each against a running Parley: creates a channel, posts, reads the tree, lists, uploads and downloads. Then it
 * lets the linters of the documents read them. Not part of `npm test`: it needs the registries of npm, PyPI, Go and Maven,
 * and Python 3, Go, and a JDK with Maven.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { startParleyProcess } from '#test/support/parley-process.ts';

import { GENERATORS, type Workshop } from './generators.ts';

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !Object.hasOwn(GENERATORS, name));
if (unknown.length > 0) {
  print(`no such generator: ${unknown.join(', ')}; the generators are ${Object.keys(GENERATORS).join(', ')}`);
  process.exit(2);
}

/** Installed generators, which the next run uses again. */
const TOOLS = join(import.meta.dirname, '../../node_modules/.cache/parley-generators');
const STEP_TIMEOUT_MS = 15 * 60_000;

await mkdir(TOOLS, { recursive: true });
const folder = await mkdtemp(join(tmpdir(), 'parley-generators-'));
const parley = await startParleyProcess();
const failed: string[] = [];
try {
  for (const name of ['openapi', 'openapi-3.0', 'asyncapi']) {
    await writeFile(join(folder, `${name}.json`), await (await fetch(`${parley.baseUrl}/${name}.json`)).text());
  }
  for (const [name, { version, run }] of Object.entries(GENERATORS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const own = join(folder, name);
    await mkdir(own);
    const problem = await run(workshopIn(own)).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    print(`${problem === null ? 'ok     ' : 'FAILED '}${name} ${version}${problem === null ? '' : `: ${problem}`}`);
    if (problem !== null) failed.push(name);
  }
} finally {
  await parley.stop();
  await rm(folder, { recursive: true, force: true });
}
print(failed.length === 0 ? 'generators: all passed' : `generators: failed: ${failed.join(', ')}`);
process.exit(failed.length === 0 ? 0 : 1);

function workshopIn(own: string): Workshop {
  const env = {
    ...process.env,
    PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
    PARLEY_URL: parley.baseUrl,
    PARLEY_KEY: parley.apiKey,
    NO_COLOR: '1',
  };
  return {
    folder: own,
    tools: TOOLS,
    document: (name) => join(folder, `${name}.json`),
    async execute(program, args, { cwd = own, variables = {} } = {}) {
      const options = { cwd, env: { ...env, ...variables }, timeout: STEP_TIMEOUT_MS, maxBuffer: 2 ** 28 };
      try {
        const { stdout, stderr } = await promisify(execFile)(program, args, options);
        return stdout + stderr;
      } catch (error) {
        const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
        const output = `${stdout}${stderr}`.trim().split('\n');
        throw new Error(
          `${program} ${args[0] ?? ''} failed: ${[...output.slice(0, 15), ...output.slice(15).slice(-15)].join('\n')}`,
          {
            cause: error,
          },
        );
      }
    },
  };
}
