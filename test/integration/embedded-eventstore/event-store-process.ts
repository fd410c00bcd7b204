// Runs `main.ts` of the embedded event store as a child process, optionally
// through a shell command.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../../../infra/embedded-eventstore/main.ts');

export type StoreProcess = {
  url: string;
  child: ChildProcess;
  /** Its output so far. */
  output(): string;
  /** Sends a signal to the process and its wrapper; resolves with the exit code (null: ended by the signal). */
  end(signal: NodeJS.Signals): Promise<number | null>;
};

export type Ended = { code: number | null; output: string };

type Options = {
  dataDir: string;
  port?: number;
  /** Default true. */
  insecure?: boolean;
  /** Shell text before the command of the event store, e.g. `ulimit -f 100; exec`. */
  shell?: string;
};

/** Starts it and waits for the URL that it prints. @throws Error with its output when it ends instead */
export async function startStoreProcess(options: Options): Promise<StoreProcess> {
  const child = launch(options);
  const exit = once(child, 'exit');
  const output = collect(child);
  const url = await Promise.race([
    new Promise<string>((resolve) => {
      child.stdout?.on('data', () => {
        const match = /esdb:\S+/.exec(output());
        if (match) resolve(match[0]);
      });
    }),
    exit.then(() => {
      throw new Error(output());
    }),
  ]);
  return {
    url,
    child,
    output,
    async end(signal) {
      // The process group, because a tracer does not forward the signal.
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, signal);
      }
      const [code]: (number | null)[] = await exit;
      return code ?? null;
    },
  };
}

/** Runs it when it is expected to fail at the start. */
export async function runStoreProcess(options: Options): Promise<Ended> {
  const child = launch(options);
  const output = collect(child);
  const [code]: (number | null)[] = await once(child, 'close');
  return { code: code ?? null, output: output() };
}

function launch({ dataDir, port = 0, insecure = true, shell = 'exec' }: Options): ChildProcess {
  return spawn('/bin/sh', ['-c', `${shell} "$0" "$1"`, process.execPath, MAIN], {
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      DATA_DIR: dataDir,
      EVENTSTORE_PORT: String(port),
      EVENTSTORE_INSECURE: String(insecure),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
}

function collect(child: ChildProcess): () => string {
  let text = '';
  child.stdout?.on('data', (chunk) => (text += String(chunk)));
  child.stderr?.on('data', (chunk) => (text += String(chunk)));
  return () => text;
}
