/** A part of Parley as a child process, with ways to make it fail. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { asRecord } from './log-reader.ts';

export interface TestProcess {
  /** `kill -9`, also after it has ended; resolves when the process is gone. */
  kill9(): Promise<void>;
  /** SIGTERM; resolves when the process is gone. */
  end(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** Its answer to a message: its state. Rejects when the process has ended. */
  detail(): Promise<Record<string, unknown>>;
}

/** Loading TypeScript is most of the start of a process; this cache reduces it to a third. `npm start` and `parley` use it. */
export const COMPILE_CACHE =
  process.env['NODE_COMPILE_CACHE'] ?? join(import.meta.dirname, '../../node_modules/.cache/compiled');

/**
 * @param script answers each message with an object, and ends when its parent disconnects
 * @param env its configuration, as environment variables
 */
export function startTestProcess(script: string, env: Readonly<Record<string, string>>): TestProcess {
  const child = fork(script, [], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env, LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await exited;
  };
  return {
    kill9: () => end('SIGKILL'),
    end: () => end('SIGTERM'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async detail() {
      const answer = once(child, 'message');
      child.send('detail', () => undefined);
      const ended = exited.then(([code, signal]) => {
        throw new Error(`the process has ended: ${String(signal ?? code)}`);
      });
      const [detail] = await Promise.race([answer, ended]);
      return asRecord(detail);
    },
  };
}
