/** Installs and runs the public Autobahn test suite, and reads its results. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

// Its newest release is for Python 3 by name only: it does not start there.
const VERSION = '0.8.2';
const FOLDER = join(import.meta.dirname, '../../node_modules/.cache/parley-autobahn', `autobahntestsuite-${VERSION}`);
const START = join(FOLDER, 'start.py');

const run = promisify(execFile);

/**
 * Installs it once, under node_modules.
 * @param python a Python 2.7 with pip
 * @throws Error with one line that names the missing requirement
 */
export async function installWstest(python: string, say: (line: string) => void): Promise<void> {
  if ((await stat(START).catch(() => undefined)) !== undefined) return;
  await run(python, ['-c', 'import sys; sys.exit(sys.version_info[:2] != (2, 7))']).catch((cause: unknown) => {
    throw new Error(`the Autobahn test suite needs Python 2.7; ${python} is none (name one with --python)`, { cause });
  });
  say(`installing autobahntestsuite ${VERSION} from PyPI, once`);
  await mkdir(FOLDER, { recursive: true });
  const packages = join(FOLDER, 'packages');
  const install = ['-m', 'pip', 'install', '--quiet', '--target', packages, `autobahntestsuite==${VERSION}`];
  await run(python, install).catch((cause: unknown) => {
    throw new Error(`autobahntestsuite could not be installed with ${python} (pip, and PyPI, are needed)`, { cause });
  });
  const lines = [
    'import site, sys, warnings',
    "warnings.simplefilter('ignore')",
    `packages = ${JSON.stringify(packages)}`,
    'sys.path.insert(0, packages)',
    '# Reads the .pth files, which its namespace packages need.',
    'site.addsitedir(packages)',
    'from autobahntestsuite.wstest import run',
    'run()',
  ];
  await writeFile(START, `${lines.join('\n')}\n`);
}

const report = z.record(
  z.string(),
  z.record(z.string(), z.object({ behavior: z.string(), behaviorClose: z.string() })),
);

export interface CaseResult {
  readonly id: string;
  /** `OK`, `NON-STRICT`, `INFORMATIONAL`, `UNIMPLEMENTED`, `FAILED`, … */
  readonly behavior: string;
  readonly close: string;
}

/** Runs the cases against the server on this port; writes the report to `folder`. */
export async function runWstest(
  python: string,
  { port, cases, folder }: { port: number; cases: readonly string[]; folder: string },
): Promise<CaseResult[]> {
  const spec = {
    outdir: join(folder, 'reports'),
    servers: [{ agent: 'Parley', url: `ws://127.0.0.1:${port}` }],
    cases,
    'exclude-cases': [],
    'exclude-agent-cases': {},
  };
  const file = join(folder, 'fuzzingclient.json');
  await writeFile(file, JSON.stringify(spec));
  const child = spawn(python, [START, '-m', 'fuzzingclient', '-s', file], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`wstest ended with ${String(code)}`);
  const { Parley: results = {} } = report.parse(JSON.parse(await readFile(join(folder, 'reports/index.json'), 'utf8')));
  return Object.entries(results).map(([id, { behavior, behaviorClose }]) => ({ id, behavior, close: behaviorClose }));
}
