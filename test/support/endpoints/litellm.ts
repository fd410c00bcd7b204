/** A LiteLLM proxy, from PyPI, in a virtual environment that is kept for later runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

import { eventually } from '../eventually.ts';
import { onFreePort } from '../on-free-port.ts';

export const LITELLM_VERSION = '1.108.7';
/** LiteLLM does not start with a key that is short or known. */
const KEY = 'sk-of-the-tests-0123456789abcdef';
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'parley-tests');
const VENV = join(CACHE, `litellm-${LITELLM_VERSION}`);
/** It loads a thousand modules. */
const START_MS = 240_000;

export interface LiteLlm {
  readonly baseUrl: string;
  readonly apiKey: string;
  stop(): Promise<void>;
}

/** @param models the parameters of LiteLLM for each name of a model */
export async function startLiteLlm(models: Readonly<Record<string, object>>): Promise<LiteLlm> {
  await install();
  const folder = await mkdtemp(join(tmpdir(), 'parley-litellm-'));
  const config = join(folder, 'config.json');
  // JSON is YAML.
  const model_list = Object.entries(models).map(([model_name, litellm_params]) => ({ model_name, litellm_params }));
  await writeFile(config, JSON.stringify({ model_list, litellm_settings: { num_retries: 0, telemetry: false } }));
  const started = await onFreePort((port) => startOn(port, config));
  return {
    ...started,
    async stop() {
      await started.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startOn(port: number, config: string): Promise<LiteLlm> {
  const child = spawn(join(VENV, 'bin/litellm'), ['--config', config, '--host', '127.0.0.1', '--port', String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // Nothing of it leaves the machine: prices come from the package, and requests use no proxy.
    env: {
      PATH: process.env['PATH'],
      LITELLM_MASTER_KEY: KEY,
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      DO_NOT_TRACK: '1',
      NO_PROXY: '*',
    },
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk}`.slice(-4_000)));
  const exited = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill();
    await exited;
  };
  try {
    await eventually(
      async () => {
        if (child.exitCode !== null) return;
        expectOk(await fetch(`http://127.0.0.1:${port}/health/liveliness`));
      },
      { timeoutMs: START_MS, everyMs: 250 },
    );
    if (child.exitCode !== null) throw new Error(`LiteLLM has ended: ${said}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: KEY, stop };
}

function expectOk({ ok, status }: Response): void {
  if (!ok) throw new Error(`LiteLLM answers ${status}`);
}

/** The environment has its paths in its scripts, so it is made in its place; a file says that it is whole. */
async function install(): Promise<void> {
  const isWhole = join(VENV, 'is-whole');
  if (existsSync(isWhole)) return;
  await run('python3', ['-m', 'venv', '--clear', VENV]);
  await run(join(VENV, 'bin/python'), ['-m', 'pip', 'install', '-q', `litellm[proxy]==${LITELLM_VERSION}`]);
  await writeFile(isWhole, '');
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const [code] = await once(spawn(command, args, { stdio: 'inherit' }), 'exit');
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}`);
}
