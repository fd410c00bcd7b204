/** Installs and runs Schemathesis in a Python environment of its own, and reads its report. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const VERSION = '4.32.5';
const ENVIRONMENT = join(import.meta.dirname, '../../node_modules/.cache/parley-fuzz', `schemathesis-${VERSION}`);

/** Its checks of every answer. Our own check on the log proves that refused requests write nothing. */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'ignored_auth',
  'unsupported_method',
  'allow_header_conformance',
];

const HOOKS = { SCHEMATHESIS_HOOKS: 'media_types', PYTHONPATH: import.meta.dirname, PYTHONDONTWRITEBYTECODE: '1' };

/** Without PyPI, it must fail soon. */
const PIP_OPTIONS = ['--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '15'];

const run = promisify(execFile);

/**
 * Installs it once, under node_modules; needs Python 3.10 or newer with `venv`, and PyPI.
 * @returns the path of its command
 * @throws Error with one line that names the missing requirement
 */
export async function installSchemathesis(say: (line: string) => void): Promise<string> {
  const command = join(ENVIRONMENT, 'bin/schemathesis');
  if (await works(command)) return command;
  const python = await findPython();
  say(`installing Schemathesis ${VERSION} from PyPI, once`);
  try {
    await run(python, ['-m', 'venv', '--clear', ENVIRONMENT]);
    await run(join(ENVIRONMENT, 'bin/python'), ['-m', 'pip', 'install', ...PIP_OPTIONS, `schemathesis==${VERSION}`]);
  } catch (error) {
    throw new Error(`Schemathesis could not be installed with ${python} (its module venv, and PyPI, are needed)`, {
      cause: error,
    });
  }
  return command;
}

async function works(command: string): Promise<boolean> {
  if ((await stat(command).catch(() => undefined)) === undefined) return false;
  // A moved checkout leaves a command that points to the former path of its Python.
  return run(command, ['--version']).then(
    () => true,
    () => false,
  );
}

const NEW_ENOUGH = 'import sys; sys.exit(sys.version_info < (3, 10))';

async function findPython(): Promise<string> {
  for (const name of ['python3', 'python']) {
    const found = await run(name, ['-c', NEW_ENOUGH]).then(
      () => true,
      () => false,
    );
    if (found) return name;
  }
  throw new Error('the fuzzer needs Python 3.10 or newer (python3) on the path: install it, then run this again');
}

export interface FuzzOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly seconds: number;
  readonly examples: number;
  readonly seed: number;
  /** A folder for its report and its database. */
  readonly folder: string;
}

/**
 * Runs it with its output on this terminal.
 * @returns its exit code, and all exchanges
 */
export async function fuzz(command: string, options: FuzzOptions): Promise<{ code: number; exchanges: Exchange[] }> {
  const report = join(options.folder, 'report.ndjson');
  const settings: Record<string, string> = {
    '--header': `Authorization: Bearer ${options.apiKey}`,
    '--checks': CHECKS.join(','),
    '--max-time': String(options.seconds),
    '--max-examples': String(options.examples),
    '--seed': String(options.seed),
    '--request-timeout': '10',
    '--suppress-health-check': 'all',
    '--warnings': 'off',
    '--report': 'ndjson',
    '--report-ndjson-path': report,
  };
  const args = ['run', `${options.baseUrl}/openapi.json`, '--continue-on-failure', ...Object.entries(settings).flat()];
  const env = { ...process.env, ...HOOKS };
  const child = spawn(command, args, { cwd: options.folder, env, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'exit');
  return { code: typeof code === 'number' ? code : 1, exchanges: exchangesOf(await readFile(report, 'utf8')) };
}

/** One request and its answer; no status if there was none. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly status: number | null;
  /** The `x-request-id` of the answer. */
  readonly requestId: string | null;
}

const scenario = z.object({
  ScenarioFinished: z.object({
    recorder: z.object({
      interactions: z
        .record(
          z.string(),
          z.object({
            request: z.object({ method: z.string(), uri: z.string() }),
            response: z
              .object({ status_code: z.number(), headers: z.record(z.string(), z.array(z.string())) })
              .nullish(),
          }),
        )
        .default({}),
    }),
  }),
});

function exchangesOf(report: string): Exchange[] {
  const lines = report.split('\n').filter((line) => line.startsWith('{"ScenarioFinished"'));
  return lines.flatMap((line) => {
    const { interactions } = scenario.parse(JSON.parse(line)).ScenarioFinished.recorder;
    return Object.values(interactions).map(({ request, response }) => ({
      method: request.method,
      path: request.uri.replace(/^https?:\/\/[^/]+/, '').replace(/[?#].*$/s, ''),
      status: response?.status_code ?? null,
      requestId: response?.headers['x-request-id']?.[0] ?? null,
    }));
  });
}
