/** A checkout of Parley, started as its users start it: `npm start`. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { eventually } from '#test/support/eventually.ts';
import { environmentOfCheckout } from '#test/support/former-checkout.ts';

export interface Started {
  readonly baseUrl: string;
  /** Runs a command of the same checkout on the same data. @returns its standard output */
  parley(...args: string[]): Promise<string>;
  stop(): Promise<void>;
}

export type Settings = Readonly<Record<string, string>>;

const START_MS = 600_000;

/**
 * @param folder of the checkout
 * @param settings the variables of Parley; PORT among them
 */
export async function startCheckout(folder: string, settings: Settings): Promise<Started> {
  const env = { ...environmentOfCheckout(), ...settings };
  const program = spawn('npm', ['start'], { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  program.stdout.on('data', (chunk) => (output += String(chunk)));
  program.stderr.on('data', (chunk) => (output += String(chunk)));
  // Only once no process of the start holds its output any longer.
  const ended = once(program, 'close');
  const stop = async (): Promise<void> => {
    if (program.pid !== undefined && program.exitCode === null) process.kill(-program.pid, 'SIGTERM');
    await ended;
  };
  const baseUrl = `http://127.0.0.1:${settings['PORT']}`;
  try {
    await eventually(
      async () => {
        if (program.exitCode !== null) return true;
        return (await fetch(`${baseUrl}/health/ready`)).status === 200;
      },
      { timeoutMs: START_MS, everyMs: 200 },
    );
    if (program.exitCode !== null) throw new Error('it ended');
  } catch (error) {
    await stop();
    throw new Error(`${folder} did not start: ${String(error)}\n${output.slice(-3_000)}`, { cause: error });
  }
  return {
    baseUrl,
    stop,
    async parley(...args) {
      const node = [`${folder}/node_modules/.bin/node`, `${folder}/services/cli/main.ts`] as const;
      const options = { env, cwd: folder, maxBuffer: 256 * 1024 * 1024 };
      return (await promisify(execFile)(node[0], [node[1], ...args], options)).stdout;
    },
  };
}
